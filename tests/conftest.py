"""What every test shares: the kernel under test, and an option for slow machines."""

import sys
from collections.abc import Iterator
from types import ModuleType

import hypothesis
import pytest

import chapoly
import chapoly.testing

NATIVE_KERNELS = [name for name in chapoly.kernels() if name != "pure"]
NO_NATIVE = pytest.param("", marks=pytest.mark.skip(reason="this installation has no native module"))


@pytest.fixture(params=chapoly.kernels())
def api(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The package, computing with each kernel that this machine has; take its names at call time."""
    with chapoly.testing.use_kernel(request.param):
        yield chapoly


@pytest.fixture(params=NATIVE_KERNELS or [NO_NATIVE])
def native_api(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The same with the native kernels alone, for what is compared with pure or only true of C."""
    with chapoly.testing.use_kernel(request.param):
        yield chapoly


@pytest.fixture
def eager_switches() -> Iterator[None]:
    """Threads change as often as CPython lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pure-vectors-only",
        action="store_true",
        help="for emulated machines, where Python is slow: run only the vectors on the pure implementation, "
        "and fewer random examples",
    )
    parser.addoption(
        "--one-kernel",
        action="store_true",
        help="run the native implementation with the kernel in use alone: for another Python or another form "
        "of the same build, to which kernels are all the same",
    )


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.register_profile(
        "chapoly",
        deadline=None,
        database=None,
        max_examples=20 if config.getoption("--pure-vectors-only") else 100,
        # The fixtures here hold no state, so that all examples may share one.
        suppress_health_check=[
            hypothesis.HealthCheck.function_scoped_fixture,
            hypothesis.HealthCheck.too_slow,
        ],
    )
    hypothesis.settings.load_profile("chapoly")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [
        item
        for item in items
        if (
            config.getoption("--pure-vectors-only")
            and runs_on_pure(item)
            and item.path.name != "test_vectors.py"
        )
        or (config.getoption("--one-kernel") and runs_on_another_kernel(item))
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def runs_on_pure(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("api") == "pure"


def runs_on_another_kernel(item: pytest.Item) -> bool:
    """Whether it is parametrized by a native kernel that is not in use."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(
        callspec.params.get(name, chapoly.kernel) not in (chapoly.kernel, "pure", "")
        for name in ("api", "native_api", "kernel")
    )


def pytest_report_header() -> str:
    return f"chapoly {chapoly.__version__} from {chapoly.__path__[0]}, kernels {', '.join(chapoly.kernels())}"
