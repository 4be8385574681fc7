"""Input-required rounds: a tool asks its caller for something and is called again with the answer.

Stateless: what has to be remembered travels in `requestState`, signed so that it cannot be changed.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY

from zibaldone.protocol.jsonrpc import INVALID_PARAMS, Message, ProtocolError

Result = dict[str, Any]

_KEY = secrets.token_bytes(32)
_ROOTS = {"method": "roots/list", "params": {}}


@dataclass(frozen=True, slots=True)
class Round:
    """What a fixture sees of a call."""

    responses: dict[str, dict[str, Any]]
    state: str | None
    """The state of the round before, verified; None in the first."""
    capabilities: dict[str, Any]

    @classmethod
    def of(cls, message: Message) -> Round:
        responses = message.params.get("inputResponses", {})
        if not isinstance(responses, dict) or not all(
            isinstance(response, dict) for response in responses.values()
        ):
            raise ProtocolError(INVALID_PARAMS, "inputResponses must be an object of objects.")
        signed = message.params.get("requestState")
        state = None if signed is None else _verified(signed)
        return cls(responses, state, message.meta.get(CLIENT_CAPABILITIES_META_KEY) or {})


def text(words: str, **more: Any) -> Result:
    return {"content": [{"type": "text", "text": words}], **more}


def elicit(message: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema},
    }


def sample(words: str, tokens_max: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": words}}]
    return {
        "method": "sampling/createMessage",
        "params": {"messages": messages, "maxTokens": tokens_max},
    }


def ask(requests: dict[str, Any], state: str | None = None) -> Result:
    result: Result = {"resultType": "input_required", "inputRequests": requests}
    if state is not None:
        result["requestState"] = _signed(state)
    return result


def _signed(state: str) -> str:
    return f"{state}.{hmac.new(_KEY, state.encode(), 'sha256').hexdigest()}"


def _verified(signed: Any) -> str:
    state = str(signed).rpartition(".")[0]
    if not hmac.compare_digest(_signed(state).encode(), str(signed).encode()):
        raise ProtocolError(INVALID_PARAMS, "requestState was changed on its way.")
    return state


_NAME = {"type": "string"}
_ALL_THREE = {
    "user_name": elicit("What is your name?", name=_NAME),
    "greeting": sample("Generate a greeting", 50),
    "client_roots": _ROOTS,
}


def _greeting(round_: Round) -> Result:
    if "user_name" not in round_.responses:
        return ask({"user_name": elicit("What is your name?", name=_NAME)})
    return text(f"Hello, {round_.responses['user_name'].get('content', {}).get('name')}!")


def once(key: str, request: dict[str, Any]) -> Callable[[Round], Result]:
    def run(round_: Round) -> Result:
        return text(f"{key}: received") if key in round_.responses else ask({key: request})

    return run


def _confirmed(round_: Round) -> Result:
    if round_.state is not None and "confirm" in round_.responses:
        return text("state-ok")
    return ask({"confirm": elicit("Please confirm", ok={"type": "boolean"})}, "confirm")


def _all_inputs(round_: Round) -> Result:
    if round_.state is not None and _ALL_THREE.keys() <= round_.responses.keys():
        return text("all three")
    return ask(_ALL_THREE, "many")


def _two_rounds(round_: Round) -> Result:
    if round_.state == "round-2" and "step2" in round_.responses:
        return text("done")
    if round_.state == "round-1" and "step1" in round_.responses:
        return ask({"step2": elicit("Step 2: which colour?", color=_NAME)}, "round-2")
    return ask({"step1": elicit("Step 1: which name?", name=_NAME)}, "round-1")


def _by_capability(round_: Round) -> Result:
    requests = {}
    if "sampling" in round_.capabilities:
        requests["sampled"] = sample("Hello", 50)
    if "elicitation" in round_.capabilities:
        requests["asked"] = elicit("Which name?", name=_NAME)
    return ask(requests)


def prompt_with_context(round_: Round) -> Result:
    if "user_context" not in round_.responses:
        return ask({"user_context": elicit("Which context?", context=_NAME)})
    content = {"type": "text", "text": "The context was received."}
    return {"messages": [{"role": "user", "content": content}]}


TOOLS: dict[str, Callable[[Round], Result]] = {
    "test_streaming_elicitation": once("answer", elicit("Which answer?", answer=_NAME)),
    "test_input_required_result_elicitation": _greeting,
    "test_input_required_result_sampling": once(
        "capital_question", sample("What is the capital of France?", 100)
    ),
    "test_input_required_result_list_roots": once("client_roots", _ROOTS),
    "test_input_required_result_request_state": _confirmed,
    "test_input_required_result_tampered_state": _confirmed,
    "test_input_required_result_multiple_inputs": _all_inputs,
    "test_input_required_result_multi_round": _two_rounds,
    "test_input_required_result_capabilities": _by_capability,
}
