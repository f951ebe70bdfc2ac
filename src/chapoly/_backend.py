"""The one choice between native and pure, and between native kernels, made when chapoly is first imported.

Two environment variables steer it, unless Python ignores its environment (-E, -I); empty means unset:

- CHAPOLY_KERNEL forces one of kernels(), or is an ImportError;
- CHAPOLY_REQUIRE_NATIVE=1 forbids pure.

A kernel is used only if it answers the known questions of _selftest right. A forced one that does not is an
ImportError; otherwise the next is taken, with a RuntimeWarning. pure is never the answer to a wrong native
result.
"""

import sys

from chapoly import _build
from chapoly.errors import PureBackendWarning

TYPE_CHECKING = False  # as in typing, without importing it: `import chapoly` loads no other module
if TYPE_CHECKING:
    from types import FrameType, ModuleType

    from chapoly import pure

    implementation = pure  # both have the same names and types, written once in pure


def _environment() -> tuple[str, bool]:
    """CHAPOLY_KERNEL and CHAPOLY_REQUIRE_NATIVE."""
    if sys.flags.ignore_environment:
        return "", False
    from os import environ

    require = environ.get("CHAPOLY_REQUIRE_NATIVE", "")
    if require not in ("", "0", "1"):
        raise ImportError(f"CHAPOLY_REQUIRE_NATIVE must be 1, 0 or empty, got {require!r}")
    return environ.get("CHAPOLY_KERNEL", ""), require == "1"


def _load_native() -> "ModuleType | None":
    """The native module, or None if this installation has none."""
    try:
        import chapoly._native as native
    except ModuleNotFoundError as error:
        if error.name == "chapoly._native":
            return None
        raise ImportError(f"chapoly's native module does not load: {error}") from error
    except ImportError as error:
        raise ImportError(f"chapoly's native module does not load: {error}") from error
    return native


def choose(native: "ModuleType | None", wanted: str, require_native: bool) -> str:
    """The name of the kernel to use: the one wanted, else the first that answers right."""
    usable = usable_kernels(native)
    offer = ", ".join(usable)
    if wanted and wanted not in usable:
        raise ImportError(f"CHAPOLY_KERNEL={wanted} is not available here; available: {offer}")
    if require_native and wanted == "pure":
        raise ImportError(f"CHAPOLY_KERNEL=pure contradicts CHAPOLY_REQUIRE_NATIVE=1; available: {offer}")
    if require_native and native is None:
        raise ImportError(f"CHAPOLY_REQUIRE_NATIVE=1, but only pure is available: {why_pure()}")

    if wanted == "pure" or (native is None and _build.pure_by_choice):
        return "pure"
    if native is None:
        _warn(
            "chapoly runs in pure Python, hundreds of times slower and not in constant time: "
            f"{why_pure()}"
            " (`chapoly info` says how to rebuild it; CHAPOLY_KERNEL=pure asks for it without this warning)",
            PureBackendWarning,
        )
        return "pure"

    from chapoly._selftest import failures

    for name in [wanted] if wanted else usable[:-1]:
        native.use(name)
        wrong = failures(native, several_blocks=name != "portable")
        if not wrong:
            break
        report = f"chapoly's kernel {name} gives wrong answers ({', '.join(wrong)})"
        if wanted or name == usable[-2]:
            raise ImportError(report)
        _warn(report + "; the next one is used. Please report this.", RuntimeWarning)
    return name


def _warn(text: str, category: type[Warning]) -> None:
    """Warns at the line outside of this package that imports it. (From 3.12 on warn() could look for it.)"""
    from warnings import warn

    package = _warn.__code__.co_filename.rpartition("_backend")[0]
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None:
        file = frame.f_code.co_filename
        if not ("importlib" in file and "_bootstrap" in file):  # of the import itself: warn() skips them too
            level += 1
            if not file.startswith(package):
                break
        frame = frame.f_back
    warn(text, category, stacklevel=level)


def why_pure() -> str:
    """Why there is no native module."""
    return _build.why_pure or "the native module is missing from this installation"


def usable_kernels(native: "ModuleType | None") -> tuple[str, ...]:
    """Names of the kernels that can run, fastest first."""
    offered = native.kernels() if native is not None else ()
    return (*(name for name, obstacle, _ in offered if obstacle is None), "pure")


def kernels() -> tuple[str, ...]:
    """The kernels that this machine offers, fastest first; "pure" is the last."""
    return usable_kernels(native)


try:
    native = _load_native()
    kernel = choose(native, *_environment())
except ImportError as error:
    error.name = "chapoly"  # that is what cannot be imported; then `python -m chapoly` says why in one line
    raise
backend = "pure" if kernel == "pure" else "native"

if not TYPE_CHECKING:
    if kernel == "pure":
        from chapoly import pure as implementation
    else:
        implementation = native
