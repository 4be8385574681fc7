"""Makes the checks one after the other, in a folder of their own, and clears that in any case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from zibaldone.canary import probes, risks
from zibaldone.canary.check import Bench, Check, Failed, NotPossible, Outcome, Report, Result
from zibaldone.canary.deployment import Deployment, Unreachable
from zibaldone.canary.folder import Folder
from zibaldone.errors import ZibaldoneError

CHECKS: tuple[Check, ...] = (*probes.CHECKS, *risks.CHECKS)


async def run(
    deployment: Deployment,
    checks: Sequence[Check],
    *,
    write_seconds: int,
    slack: float,
    on_outcome: Callable[[Outcome], None],
) -> Report:
    """A ZibaldoneError: the deployment cannot be checked at all."""
    await deployment.require_ready()
    folder = await Folder.open(deployment)
    bench = Bench(deployment, folder, write_seconds, slack)
    outcomes: list[Outcome] = []
    left_behind: list[str] = []
    try:
        await folder.clear_earlier()
        for check in checks:
            outcomes.append(await _outcome(check, bench))
            on_outcome(outcomes[-1])
    finally:
        left_behind += await folder.clear()
    return Report(deployment.description, outcomes, left_behind)


async def _outcome(check: Check, bench: Bench) -> Outcome:
    began_s = time.monotonic()
    result: Result = "failed"
    try:
        detail = await check.run(bench)
        result = "passed"
    except NotPossible as reason:
        result, detail = "skipped", str(reason)
    except (Failed, Unreachable) as reason:
        detail = str(reason)
    except ZibaldoneError as error:
        detail = f"{error.message} [{error.code}]"
    return Outcome(check.name, check.what, result, detail, round(time.monotonic() - began_s, 3))
