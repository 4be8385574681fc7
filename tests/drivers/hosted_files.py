"""OpenAI's files and vector stores, in memory: uploaded, added, searched by words, deleted."""

from __future__ import annotations

import email.parser
import email.policy
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from tests.drivers.model_formats import CREATED

_LIST_LIMIT = 20


@dataclass(slots=True)
class HostedFile:
    file_id: str
    name: str
    purpose: str
    content: bytes

    def shown(self) -> dict[str, Any]:
        return {
            "id": self.file_id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": CREATED,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
        }


@dataclass(slots=True)
class HostedStore:
    store_id: str
    name: str
    metadata: dict[str, Any]
    expires_after: Any
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    """File ids, with the attributes they were added with."""

    def shown(self) -> dict[str, Any]:
        count = len(self.files)
        counts = {"in_progress": 0, "completed": count, "failed": 0, "cancelled": 0, "total": count}
        return {
            "id": self.store_id,
            "object": "vector_store",
            "created_at": CREATED,
            "name": self.name,
            "metadata": self.metadata,
            "expires_after": self.expires_after,
            "status": "completed",
            "usage_bytes": 0,
            "last_active_at": CREATED,
            "file_counts": counts,
        }


class Missing(Exception):
    """There is no such object; answered 404."""


class HostedFiles:
    def __init__(self) -> None:
        self.files: dict[str, HostedFile] = {}
        self.stores: dict[str, HostedStore] = {}
        self.stores_made = 0
        self._ids = iter(range(1, 1_000_000))

    def answer(self, method: str, target: str, content_type: str, body: bytes) -> Any:
        """JSON or bytes; None if the path is none of ours. Raises Missing."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        match url.path.removeprefix("/v1/").split("/"):
            case ["files", *rest]:
                return self._answer_files(method, rest, query, content_type, body)
            case ["vector_stores", *rest]:
                return self._answer_stores(method, rest, query, orjson.loads(body or b"{}"))
        return None

    def _answer_files(
        self, method: str, rest: list[str], query: dict[str, str], content_type: str, body: bytes
    ) -> Any:
        match method, rest:
            case "POST", []:
                return self._upload(content_type, body)
            case "GET", []:
                return _page([file.shown() for file in self.files.values()], query)
            case "GET", [file_id]:
                return _known(self.files, file_id).shown()
            case "GET", [file_id, "content"]:
                return _known(self.files, file_id).content
            case "DELETE", [file_id]:
                _known(self.files, file_id)
                del self.files[file_id]
                for store in self.stores.values():
                    store.files.pop(file_id, None)
                return {"id": file_id, "object": "file", "deleted": True}
        return None

    def _upload(self, content_type: str, body: bytes) -> dict[str, Any]:
        head = f"Content-Type: {content_type}\r\n\r\n".encode()
        parsed = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        parts: dict[str, Any] = {
            str(part.get_param("name", header="content-disposition")): part
            for part in parsed.iter_parts()
        }
        content = parts["file"].get_payload(decode=True)
        purpose = parts["purpose"].get_payload(decode=True).decode()
        name = parts["file"].get_filename()
        file = HostedFile(f"file-{next(self._ids)}", name, purpose, content)
        self.files[file.file_id] = file
        return file.shown()

    def _answer_stores(
        self, method: str, rest: list[str], query: dict[str, str], body: dict[str, Any]
    ) -> Any:
        match method, rest:
            case "POST", []:
                return self._create(body)
            case "GET", []:
                return _page([store.shown() for store in self.stores.values()], query)
            case "GET", [store_id]:
                return _known(self.stores, store_id).shown()
            case "DELETE", [store_id]:
                _known(self.stores, store_id)
                del self.stores[store_id]
                return {"id": store_id, "object": "vector_store.deleted", "deleted": True}
            case _, [store_id, *below]:
                return self._answer_store(method, _known(self.stores, store_id), below, query, body)
        return None

    def _create(self, body: dict[str, Any]) -> dict[str, Any]:
        store = HostedStore(
            f"vs_{next(self._ids)}",
            body.get("name") or "",
            body.get("metadata") or {},
            body.get("expires_after"),
        )
        for file_id in body.get("file_ids", ()):
            self._add(store, file_id, {})
        self.stores[store.store_id] = store
        self.stores_made += 1
        return store.shown()

    def _answer_store(
        self,
        method: str,
        store: HostedStore,
        below: list[str],
        query: dict[str, str],
        body: dict[str, Any],
    ) -> Any:
        match method, below:
            case "POST", []:
                store.name = body.get("name", store.name)
                store.metadata = body.get("metadata", store.metadata)
                return store.shown()
            case "POST", ["search"]:
                return self._search(store, body)
            case "POST", ["files"]:
                return self._add(store, body["file_id"], body.get("attributes") or {})
            case "GET", ["files"]:
                return _page([_in_store(store, file_id) for file_id in store.files], query)
            case "GET", ["files", file_id]:
                _known(store.files, file_id)
                return _in_store(store, file_id)
            case "DELETE", ["files", file_id]:
                _known(store.files, file_id)
                del store.files[file_id]
                return {"id": file_id, "object": "vector_store.file.deleted", "deleted": True}
            case "POST", ["file_batches"]:
                added = [(file_id, body.get("attributes")) for file_id in body.get("file_ids", ())]
                added += [
                    (file["file_id"], file.get("attributes")) for file in body.get("files", ())
                ]
                for file_id, attributes in added:
                    self._add(store, file_id, attributes or {})
                return _batch(store, f"vsfb_{len(added)}")
            case "GET", ["file_batches", batch_id]:
                return _batch(store, batch_id)
        return None

    def _add(self, store: HostedStore, file_id: str, attributes: dict[str, Any]) -> dict[str, Any]:
        _known(self.files, file_id)
        store.files[file_id] = attributes
        return _in_store(store, file_id)

    def _search(self, store: HostedStore, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["query"] if isinstance(body["query"], list) else [body["query"]]
        words = set(re.findall(r"\w+", " ".join(asked).lower()))
        hits = []
        for file_id, attributes in store.files.items():
            file = self.files[file_id]
            text = file.content.decode("utf-8", "replace")
            common = words & set(re.findall(r"\w+", f"{file.name} {text}".lower()))
            if common:
                hits.append(
                    {
                        "file_id": file_id,
                        "filename": file.name,
                        "score": len(common) / len(words),
                        "attributes": attributes,
                        "content": [{"type": "text", "text": text[:3_200]}],
                    }
                )
        hits.sort(key=lambda hit: -float(str(hit["score"])))
        return {
            "object": "vector_store.search_results.page",
            "search_query": asked,
            "data": hits[: body.get("max_num_results", 10)],
            "has_more": False,
            "next_page": None,
        }


def _known(objects: dict[str, Any], key: str) -> Any:
    if key not in objects:
        raise Missing(key)
    return objects[key]


def _in_store(store: HostedStore, file_id: str) -> dict[str, Any]:
    return {
        "id": file_id,
        "object": "vector_store.file",
        "created_at": CREATED,
        "vector_store_id": store.store_id,
        "status": "completed",
        "last_error": None,
        "usage_bytes": 0,
        "attributes": store.files[file_id],
    }


def _batch(store: HostedStore, batch_id: str) -> dict[str, Any]:
    return {
        "id": batch_id,
        "object": "vector_store.file_batch",
        "created_at": CREATED,
        "vector_store_id": store.store_id,
        "status": "completed",
        "file_counts": store.shown()["file_counts"],
    }


def _page(items: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    """The newest first, as the real ones do, unless asked for otherwise."""
    if query.get("order", "desc") == "desc":
        items.reverse()
    ids = [item["id"] for item in items]
    start = ids.index(query["after"]) + 1 if query.get("after") in ids else 0
    limit = int(query.get("limit", _LIST_LIMIT))
    page = items[start : start + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": start + limit < len(items),
    }
