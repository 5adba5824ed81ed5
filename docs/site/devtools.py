"""A page that is open in Chromium, for tests that ask it something: by the protocol of its developer
tools, over a pipe."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import subprocess
import time


class OpenPage:
    def __init__(self, program: str, profile: pathlib.Path, width: int, height: int) -> None:
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        command = [program, "--headless=new", "--disable-gpu", "--no-first-run",
                   f"--user-data-dir={profile}", f"--window-size={width},{height}",
                   "--remote-debugging-pipe"]  # fmt: skip
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        # The browser reads from its file 3 and writes to its file 4.
        shell = ["sh", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "sh", *command]
        self._process = subprocess.Popen(
            shell,
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._asked = 0
        self._rest = b""
        self._session: str | None = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = str(attached["sessionId"])

    def __enter__(self) -> OpenPage:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def _message(self) -> dict[str, object]:
        while b"\0" not in self._rest:
            read = os.read(self._from, 1 << 20)
            if not read:
                raise RuntimeError("Chromium has ended")
            self._rest += read
        message, self._rest = self._rest.split(b"\0", 1)
        got: dict[str, object] = json.loads(message)
        return got

    def _ask(self, method: str, **parameters: object) -> dict[str, object]:
        self._asked += 1
        message: dict[str, object] = {"id": self._asked, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") != self._asked:
                continue  # an event
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            result = answer["result"]
            assert isinstance(result, dict)
            return result

    def open(self, address: str) -> None:
        self._ask("Page.navigate", url=address)

    def value(self, script: str) -> object:
        """What the script, or the promise that it is, gives."""
        answer = self._ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        result = answer["result"]
        assert isinstance(result, dict)
        return result.get("value")

    def wait_for(self, condition: str, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.value(f"Boolean({condition})"):
                return True
            time.sleep(0.1)
        return False

    def picture(self, to: pathlib.Path) -> None:
        to.write_bytes(base64.b64decode(str(self._ask("Page.captureScreenshot")["data"])))
