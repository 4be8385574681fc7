"""The memory tools of a server, by the names and arguments that Graphiti gave them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from zibaldone.errors import RemoteFailed, ZibaldoneError
from zibaldone.limits import PUSH_LIST_EPISODES_MAX, PUSH_LIST_EPISODES_MIN
from zibaldone.push.backend import Backend
from zibaldone.push.remote import McpClient
from zibaldone.text.fulltext_escape import escape_query


class RemoteEpisode(NamedTuple):
    uuid: str
    name: str
    content: str
    description: str
    group: str


class Memory:
    """Calls of one server."""

    def __init__(self, client: McpClient, backend: Backend = "neo4j") -> None:
        self.client = client
        self._escape: Callable[[str], str] = escape_query if backend == "falkordb" else str

    async def add(
        self,
        *,
        name: str,
        body: str,
        group: str,
        description: str = "",
        reference_time: str | None = None,
        uuid: str | None = None,
        before_replay: Callable[[], Awaitable[dict[str, Any] | None]] | None = None,
    ) -> dict[str, Any]:
        """Add an episode. The group is stored as it is: it is no query, and never escaped."""
        arguments: dict[str, Any] = {
            "name": name,
            "episode_body": body,
            "group_id": group,
            "source": "text",
            "source_description": description,
        }
        if reference_time is not None:
            arguments["reference_time"] = reference_time
        if uuid is not None:
            arguments["uuid"] = uuid
        return await self.client.call_tool("add_memory", arguments, before_replay=before_replay)

    async def delete(self, uuid: str) -> bool:
        """Whether there was such an episode."""
        try:
            await self.client.call_tool("delete_episode", {"uuid": uuid})
        except RemoteFailed as error:
            if error.details.get("code") == "NOT_FOUND" or "not found" in error.message.lower():
                return False
            raise
        return True

    async def episodes(self, group: str) -> list[RemoteEpisode]:
        """All episodes of a group."""
        wanted = PUSH_LIST_EPISODES_MIN
        while True:
            arguments = {"group_ids": [group], "max_episodes": wanted}
            answer = await self.client.call_tool("get_episodes", arguments)
            found = answer.get("episodes")
            if not isinstance(found, list):
                raise RemoteFailed("get_episodes returned no list of episodes.")
            if len(found) < wanted:
                return [_episode(one) for one in found if isinstance(one, dict)]
            if wanted >= PUSH_LIST_EPISODES_MAX:
                raise RemoteFailed(f"The group has more than {wanted} episodes.")
            wanted *= 4

    async def search_nodes(
        self, query: str, groups: Sequence[str] = (), limit: int = 10
    ) -> list[dict[str, Any]]:
        return await self._search("search_nodes", "nodes", query, groups, {"max_nodes": limit})

    async def search_facts(
        self, query: str, groups: Sequence[str] = (), limit: int = 10
    ) -> list[dict[str, Any]]:
        return await self._search(
            "search_memory_facts", "facts", query, groups, {"max_facts": limit}
        )

    async def status(self) -> str:
        """`ok`, or what the server says is wrong."""
        answer = await self.client.call_tool("get_status", {})
        if answer.get("status") == "ok":
            return "ok"
        return str(answer.get("message") or answer.get("status") or "unknown")

    async def is_up(self) -> bool:
        """Whether the server answers at all."""
        try:
            await self.client.call_tool("get_status", {})
        except RemoteFailed:
            return True
        except ZibaldoneError:
            return False
        return True

    async def _search(
        self, tool: str, key: str, query: str, groups: Sequence[str], arguments: dict[str, Any]
    ) -> list[dict[str, Any]]:
        arguments["query"] = self._escape(query)
        if groups:
            # Here they become a part of the full-text query.
            arguments["group_ids"] = [self._escape(group) for group in groups]
        answer = await self.client.call_tool(tool, arguments)
        found = answer.get(key)
        return found if isinstance(found, list) else []


def _episode(values: dict[str, Any]) -> RemoteEpisode:
    return RemoteEpisode(
        uuid=str(values.get("uuid", "")),
        name=str(values.get("name", "")),
        content=str(values.get("content", "")),
        description=str(values.get("source_description") or ""),
        group=str(values.get("group_id", "")),
    )
