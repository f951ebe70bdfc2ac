"""The sdist and the wheels, in dist/: built twice, checked, and run; `make dist` calls it.

Linux only. From a clean checkout it makes the sdist, from that the wheels, each by Zig's clang for the libc
and the processor of its tag. All of it is then done again in another folder, and must come out byte for byte
the same. The first failure ends it.
"""

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import uuid
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection
from packageurl import PackageURL

CHECKOUT = Path(__file__).parents[1]
BUILD = CHECKOUT / "build/dist"
DIST = CHECKOUT / "dist"
TOOLS = ("meson-python", "meson", "ninja", "ziglang", "wheel")
ZIG = [sys.executable, "-m", "ziglang"]
ABI3 = "-Dpython.allow_limited_api=true"


class Target(NamedTuple):
    """A wheel, as its tag has it."""

    tag: str
    processor: str
    zig: str
    abi3: bool = True

    @property
    def platform(self) -> str:
        """The tag of the platform: which libc, how old, on what."""
        return self.tag.split("-")[2]

    @property
    def branches(self) -> str:
        """Where indirect branches may lead, marked for the CPU: CET, or BTI with PAC."""
        return "-fcf-protection" if self.processor == "x86_64" else "-mbranch-protection=standard"

    @property
    def python(self) -> str:
        """What runs it here, or nothing."""
        if "musl" in self.tag:
            return ""
        if self.processor != platform.machine():
            return output(CHECKOUT / "scripts/cross/arm64-python")
        return sys.executable if self.abi3 else free_threaded()


TARGETS = (
    Target("cp311-abi3-manylinux_2_17_x86_64", "x86_64", "x86_64-linux-gnu.2.17"),
    Target("cp311-abi3-manylinux_2_17_aarch64", "aarch64", "aarch64-linux-gnu.2.17"),
    Target("cp311-abi3-musllinux_1_2_x86_64", "x86_64", "x86_64-linux-musl"),
    Target("cp313-cp313t-manylinux_2_17_x86_64", "x86_64", "x86_64-linux-gnu.2.17", abi3=False),
)


# ---- running things ----


def run(*command: str | Path, **environment: str) -> None:
    """Runs a command in the checkout; what it printed is shown if it fails."""
    done = subprocess.run(
        command, cwd=CHECKOUT, env=os.environ | environment, text=True, stdout=-1, stderr=subprocess.STDOUT
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(map(str, command))}")


def output(*command: str | Path, **environment: str) -> str:
    """What a command prints."""
    env = os.environ | environment
    return subprocess.run(command, cwd=CHECKOUT, env=env, check=True, text=True, stdout=-1).stdout.strip()


@contextmanager
def step(name: str) -> Iterator[None]:
    """Prints what is done, and for how long."""
    print(f"=== {name}", flush=True)
    began = time.monotonic()
    yield
    print(f"--- {name}: {time.monotonic() - began:.1f} s", flush=True)


@functools.cache
def free_threaded() -> str:
    """A CPython 3.13 without a GIL."""
    return output(CHECKOUT / "scripts/free-threaded-python")


@functools.cache
def offline() -> tuple[str, ...]:
    """What goes before a command that must not have a network."""
    command = ("unshare", "--map-root-user", "--net")
    if subprocess.run((*command, "true"), check=False, stderr=subprocess.DEVNULL).returncode:
        print("this machine lets nobody take the network away: that the builds need none is not checked")
        return ()
    return command


# ---- building ----


def frontend(python: str, *arguments: str | Path, **environment: str) -> None:
    """Runs `build` without a network, with the tools of this environment, whichever Python runs it."""
    paths = {"PYTHONPATH": sysconfig.get_path("purelib")} if python != sys.executable else {}
    run(*offline(), python, "-m", "build", "--no-isolation", *arguments, **paths, **environment)


def make_sdist(folder: Path) -> Path:
    """The sdist, from what is committed."""
    frontend(sys.executable, "--sdist", "--outdir", folder, CHECKOUT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return sdist


def machine_file(target: Target, python: str, folder: Path) -> Path:
    """What meson must know to build for a target."""
    # Debian's pyconfig.h includes another one by the name of the architecture. That of this machine serves:
    # what it says to code of the limited API is the same for all 64-bit Linux.
    for name in ("x86_64-linux-gnu", "aarch64-linux-gnu"):
        headers = folder / "include" / name / "python3.11"
        headers.mkdir(parents=True, exist_ok=True)
        shutil.copy(sysconfig.get_config_h_filename(), headers)
    file = folder / f"{target.tag}.ini"
    file.write_text(
        f"""[binaries]
c = {[*ZIG, "cc", "-target", target.zig]}
ar = {[*ZIG, "ar"]}
python = '{python}'

[built-in options]
c_args = {["-isystem", f"{folder}/include", "-fstack-protector-strong", target.branches]}
c_link_args = {["-s", *(f"-Wl,-z,{word}" for word in ("relro", "now", "noexecstack"))]}

[host_machine]
system = 'linux'
cpu_family = '{target.processor}'
cpu = '{target.processor}'
endian = 'little'
"""
    )
    return file


def make_wheel(target: Target, source: Path, folder: Path) -> Path:
    """The wheel for a target, with the tag of its platform and its bill of materials."""
    python = sys.executable if target.abi3 else free_threaded()
    raw = folder / "raw" / target.tag
    options = ["-Dnative=enabled", *([ABI3] if target.abi3 else [])]
    options += ["--cross-file", str(machine_file(target, python, folder))]
    settings = [f"-Csetup-args={option}" for option in options]
    this_platform = f"linux-{target.processor}"
    frontend(python, "--wheel", *settings, "--outdir", raw, source, _PYTHON_HOST_PLATFORM=this_platform)
    (wheel,) = raw.glob("*.whl")
    run(sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", target.platform, wheel)
    return with_bill(next(raw.glob("*.whl")), folder)


def make_pure(source: Path, folder: Path) -> Path:
    """The wheel without native code."""
    raw = folder / "raw/pure"
    frontend(sys.executable, "--wheel", "-Csetup-args=-Dnative=disabled", "--outdir", raw, source)
    return with_bill(next(raw.glob("*.whl")), folder)


def with_bill(wheel: Path, folder: Path) -> Path:
    """The wheel with its software bill of materials, where PEP 770 has it."""
    unpacked, packed = folder / "unpacked" / wheel.stem, folder / "wheels"
    packed.mkdir(exist_ok=True)
    run(sys.executable, "-m", "wheel", "unpack", "--dest", unpacked, wheel)
    (root,) = unpacked.iterdir()
    (information,) = root.glob("*.dist-info")
    for module in root.rglob(
        "*.so"
    ):  # what Zig's musl calls itself; musl answers to both, auditwheel to this
        run("patchelf", "--replace-needed", "libc.so", "libc.musl-x86_64.so.1", module)
    sboms = information / "sboms"
    sboms.mkdir(exist_ok=True)
    (sboms / "chapoly.cdx.json").write_text(bill_of_materials(wheel))
    before = set(packed.iterdir())
    run(sys.executable, "-m", "wheel", "pack", "--dest-dir", packed, root)
    (result,) = set(packed.iterdir()) - before
    return result


def bill_of_materials(wheel: Path) -> str:
    """What the wheel is, under which licence, and what built it; it has no dependencies."""
    name, its_version = wheel.name.split("-")[:2]
    chapoly = Component(
        name=name,
        version=its_version,
        type=ComponentType.LIBRARY,
        licenses=[DisjunctiveLicense(id="MIT")],
        purl=PackageURL("pypi", name=name, version=its_version, qualifiers={"file_name": wheel.name}),
        bom_ref=name,
    )
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{wheel.name} {os.environ['SOURCE_DATE_EPOCH']}"),
        components=[
            Component(
                name=tool,
                version=version(tool),
                type=ComponentType.APPLICATION,
                scope=ComponentScope.EXCLUDED,
                purl=PackageURL("pypi", name=tool, version=version(tool)),
                bom_ref=tool,
            )
            for tool in TOOLS
        ],
    )
    bom.metadata.component = chapoly
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The Component this BOM is describing")  # it depends on nothing
        text: str = JsonV1Dot6(bom).output_as_string(indent=2)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"the bill of materials of {wheel.name} is not valid: {error}")
    return text + "\n"


def build_all(folder: Path) -> list[Path]:
    """The sdist and every wheel."""
    folder.mkdir(parents=True)
    with step(f"{folder.name}: sdist"):
        sdist = make_sdist(folder)
    source = folder / sdist.name.removesuffix(".tar.gz")
    made = [sdist]
    for target in TARGETS:
        with step(f"{folder.name}: {target.tag}"):
            made.append(make_wheel(target, source, folder))
    with step(f"{folder.name}: py3-none-any"):
        made.append(make_pure(source, folder))
    return made


# ---- checking ----


def check_hardening(wheel: Path, target: Target) -> None:
    """The native module has what machine_file asks of compiler and linker."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        file = archive.open(name)
        elf = ELFFile(file)
        segments = {segment["p_type"]: segment for segment in elf.iter_segments()}
        dynamic = elf.get_section_by_name(".dynamic")
        symbols = elf.get_section_by_name(".dynsym")
        assert isinstance(dynamic, DynamicSection)
        assert isinstance(symbols, SymbolTableSection)
        flags = sum(tag["d_val"] for tag in dynamic.iter_tags("DT_FLAGS"))
        features = {
            "stack protector": any(symbol.name == "__stack_chk_fail" for symbol in symbols.iter_symbols()),
            "RELRO": "PT_GNU_RELRO" in segments,
            "immediate binding": bool(flags & 8),  # DF_BIND_NOW
            "no executable stack": not segments["PT_GNU_STACK"]["p_flags"] & 1,  # PF_X
            "no text relocations": not any(dynamic.iter_tags("DT_TEXTREL")),
            "BTI and PAC" if target.processor == "aarch64" else "IBT and SHSTK": marks(elf) & 3 == 3,
        }
    if missing := [feature for feature, there in features.items() if not there]:
        sys.exit(f"{wheel.name}: {name} has no {', '.join(missing)}")
    print(f"{name}: {', '.join(features)}")


def marks(elf: ELFFile) -> int:
    """The bits of GNU_PROPERTY_X86_FEATURE_1_AND or GNU_PROPERTY_AARCH64_FEATURE_1_AND."""
    section = elf.get_section_by_name(".note.gnu.property")
    if not isinstance(section, NoteSection):
        return 0
    found = (
        int(entry["pr_data"])
        if isinstance(entry["pr_data"], int)
        else int.from_bytes(entry["pr_data"], "little")
        for note in section.iter_notes()
        for entry in note["n_desc"]
        if "FEATURE_1_AND" in str(entry["pr_type"]) or entry["pr_type"] == 0xC0000000
    )
    return next(found, 0)


def check_run(wheel: Path, python: str, backend: str) -> None:
    """The wheel is imported by the Python it is for, and every kernel answers its questions."""
    root = BUILD / "installed" / wheel.stem
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root)
    program = (
        "import sys, chapoly; from chapoly.cli import selftest\n"
        f"assert chapoly.backend == '{backend}', chapoly.backend\n"
        "assert chapoly.__file__.startswith(sys.argv[1]), chapoly.__file__\n"
        "print(sys.version.split()[0], *chapoly.kernels())\nselftest()"
    )
    path = f"{root}:{sysconfig.get_path('purelib')}"
    said = output(python, "-c", program, str(root), PYTHONPATH=path, PYTHONWARNINGS="ignore")
    print(f"{wheel.name}\n    {said.splitlines()[0]}: {said.splitlines()[-1]}")


def check(made: list[Path]) -> None:
    """Everything that is asked of the sdist and the wheels."""
    wheels = made[1:]
    empty = BUILD / "no-libraries"  # for those of this machine are of no interest
    empty.mkdir()
    with step("twine check --strict"):
        run("twine", "check", "--strict", *made)
    with step("check-wheel-contents"):
        run("check-wheel-contents", *wheels)
    for target, wheel in zip(TARGETS, wheels, strict=False):
        with step(f"auditwheel, {'abi3audit, ' if target.abi3 else ''}hardening: {target.tag}"):
            found = output("auditwheel", "show", "--ldpaths", empty, wheel)
            if target.platform not in found:
                sys.exit(found)
            if target.abi3:
                run("abi3audit", "--strict", "--assume-minimum-abi3", "3.11", wheel)
            check_hardening(wheel, target)
    with step("import and selftest"):
        for target, wheel in zip(TARGETS, wheels, strict=False):
            if target.python:
                check_run(wheel, target.python, "native")
            else:
                print(f"{wheel.name}\n    not run: there is no CPython for musl here")
        check_run(wheels[-1], sys.executable, "pure")


def digest(file: Path) -> str:
    """SHA-256."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main() -> None:
    """Builds, builds again, compares, checks."""
    began = time.monotonic()
    if sys.version_info[:2] != (3, 11):
        sys.exit("wheels for cp311-abi3 are built with CPython 3.11: make dist PYTHON=python3.11")
    if changes := output("git", "status", "--porcelain"):
        sys.exit(f"not a clean checkout:\n{changes}")
    os.environ["SOURCE_DATE_EPOCH"] = output("git", "log", "-1", "--format=%ct")
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shutil.rmtree(BUILD, ignore_errors=True)
    made, again = build_all(BUILD / "first"), build_all(BUILD / "second")
    with step("byte-identical"):
        for one, other in zip(made, again, strict=True):
            if (one.name, digest(one)) != (other.name, digest(other)):
                sys.exit(f"{one} and {other} differ")
    check(made)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for file in made:
        shutil.copy(file, DIST)
        print(digest(file), file.name)
    print(f"all of it in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
