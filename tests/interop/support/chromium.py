# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium over the Chrome DevTools Protocol: through a pipe, for which Python's library suffices.

https://chromedevtools.github.io/devtools-protocol/ describes the methods.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


class Tab:
    """One page of a browser. Keys are those of a keyboard: the browser moves the focus, and the slider."""

    def __init__(self, page: Path, *flags: str) -> None:
        # The browser's own children may still write there when it has ended.
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        read, self.to = os.pipe()
        self.answers, write = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{read} 4>&{write}', "sh", "chromium", *FLAGS, "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}", *flags],
            pass_fds=(read, write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C.UTF-8"})
        os.close(read)
        os.close(write)
        self.last, self.session, self.bytes, self.console = 0, "", b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("Page.loadEventFired")

    def __enter__(self) -> "Tab":
        return self

    def __exit__(self, *_) -> None:
        self.session = ""
        try:
            self.call("Browser.close")
            self.process.wait(timeout=30)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        self.profile.cleanup()

    def read(self) -> dict:
        while b"\0" not in self.bytes:
            more = os.read(self.answers, 1 << 16)
            if not more:
                raise RuntimeError("chromium ended")
            self.bytes += more
        text, self.bytes = self.bytes.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(message["params"])
        return message

    def wait_for(self, event: str) -> None:
        while self.read().get("method") != event:
            pass

    def call(self, method: str, **parameters) -> dict:
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.last:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def value(self, expression: str):
        """Of an expression, in the page as it is: its content policy does not bind the debugger."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def names(self) -> dict[str, list[str]]:
        """What a screen reader finds: the names of each role, in the order of the page."""
        found: dict[str, list[str]] = {}
        for node in self.call("Accessibility.getFullAXTree")["nodes"]:
            if not node.get("ignored"):
                found.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
        return found
