"""What the figures were measured on."""

import datetime
import os
import platform
import sys
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from libraries import LIBRARIES

from chapoly.cli import about


def facts() -> dict[str, Any]:
    """The machine, the versions, and how chapoly was built; no path, no name of a host."""
    us = about()
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": us["cpu"],
        "cpu family and model": cpu_numbers(),
        "cpu features": us["cpu_features"],
        "cores": len(os.sched_getaffinity(0)),
        "kernel of the system": platform.release(),
        "C library": " ".join(platform.libc_ver()),
        "transparent huge pages": huge_pages(),
        "python": us["python"],
        "chapoly": us["version"],
        "compiler": us["built"]["compiler"],
        "abi": us["built"]["abi"],
        "load at the start": load(),
        "versions": {library: version(library) for library in LIBRARIES} | {"OpenSSL": openssl()},
    }


def load() -> float:
    """How many processes wanted a core, on average over the last minute: others share this machine."""
    return round(os.getloadavg()[0], 2)


def cpu_numbers() -> str:
    """They tell what a marketing name may not."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return f"{named.get('cpu family', '?')}, {named.get('model', '?')}"


def huge_pages() -> str:
    """always, madvise or never; with them a large output costs less to touch."""
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return path.read_text(encoding="ascii").partition("[")[2].partition("]")[0] if path.exists() else "none"


def openssl() -> str:
    """The one inside cryptography."""
    backend = import_module("cryptography.hazmat.bindings._rust").openssl
    return str(backend.openssl_version_text()).removeprefix("OpenSSL ")


def unpacked(wheel: Path, folder: Path) -> tuple[ModuleType, Callable[[str], AbstractContextManager[None]]]:
    """A second chapoly, from a wheel, beside the one that is installed; and its use_kernel."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    installed = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "chapoly"}
    sys.path.insert(0, str(folder))
    try:
        second, testing = import_module("chapoly"), import_module("chapoly.testing")
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == "chapoly"]:
            del sys.modules[name]
        sys.modules.update(installed)
    if not Path(str(second.__file__)).is_relative_to(folder):
        raise SystemExit(f"{wheel} holds no chapoly")
    return second, testing.use_kernel
