# ruff: noqa: INP001 - `import proto` belongs to proto-plus, so this folder is no package
"""Generate the committed stubs of `proto/` with the pinned compiler.

    python proto/generate.py            write into this checkout
    python proto/generate.py DIRECTORY  write there, to compare with the committed files

Generated code cannot be imported by an older protobuf or grpcio than that of its compiler. So the
compiler is the oldest that we support, in its own environment (`make proto` and `make proto-check`
keep one). Its version is pinned here: raising it raises the lower bounds of `grpcio` and `protobuf`
in pyproject.toml. Any other compiler is refused, since its output cannot be compared.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

GRPCIO_TOOLS = "1.76.0"
PROTO_ROOT = Path(__file__).resolve().parent


def sources() -> list[Path]:
    """Return every .proto file, sorted."""
    return sorted(PROTO_ROOT.rglob("*.proto"))


def generate(output: Path) -> None:
    """Write `*_pb2.py`, `*_pb2.pyi` and `*_pb2_grpc.py` below ``output``.

    Raises:
        SystemExit: The pinned compiler is not installed, or a .proto file is wrong.
    """
    try:
        found = version("grpcio-tools")
    except PackageNotFoundError:
        found = "none"
    if found != GRPCIO_TOOLS:
        raise SystemExit(
            f"proto/generate.py needs grpcio-tools=={GRPCIO_TOOLS}, found {found}: "
            "`make proto` runs this in an environment that has it"
        )
    from grpc_tools import _proto as bundled
    from grpc_tools import protoc

    output.mkdir(parents=True, exist_ok=True)
    well_known = next(iter(bundled.__path__))
    arguments = [
        "protoc",
        f"--proto_path={PROTO_ROOT}",
        f"--proto_path={well_known}",
        f"--python_out={output}",
        f"--pyi_out={output}",
        f"--grpc_python_out={output}",
        *(str(source.relative_to(PROTO_ROOT)) for source in sources()),
    ]
    status = protoc.main(arguments)
    if status != 0:
        raise SystemExit(f"protoc failed with status {status}")


def main(arguments: list[str]) -> None:
    """Run the generator; the only argument is the output directory."""
    if len(arguments) > 1:
        raise SystemExit("usage: python proto/generate.py [DIRECTORY]")
    generate(Path(arguments[0]).resolve() if arguments else PROTO_ROOT.parent)


if __name__ == "__main__":
    main(sys.argv[1:])
