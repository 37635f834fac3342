"""Finds where installed products word what signatures recognise, and writes it into them.

    python tools/find_sources.py > FILE        # prints what is found
    python tools/find_sources.py --write FILE  # fills in the `source=` that FILE still has

Some words stand in a product by chance, in a comment on another's error or in a table: read the
list, and delete the rows that are so, before it is written.

A signature gets a source if the texts that its pattern cannot match without stand in string
constants of one installed product, or in a binary of it, in few enough places to name one. What
no installed product words stays without, for somebody who knows the product: drivers, NCCL,
compilers, schedulers.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from dsdoctor import packs
from dsdoctor.logs.necessary import necessary
from dsdoctor.model.condition import Signature

#: Packages whose words are looked for, the likeliest first.
PRODUCTS = (
    "deepspeed", "accelerate", "transformers", "torch", "huggingface_hub", "safetensors", "hjson",
    "pydantic_core",
)  # fmt: skip
#: Folders of them that a training job hardly runs, or that repeat what others say.
LEFT_OUT = (
    "transformers/models/", "transformers/exporters/", "torch/_inductor/", "torch/testing/",
    "torch/utils/hipify/", "torch/_dynamo/", "torch/ao/", "torch/onnx/", "torch/export/",
)  # fmt: skip
PACK = Path(__file__).parent.parent / "checks"
SITE = Path(sysconfig.get_paths()["purelib"])
#: A text shorter than this, or of fewer words, is worded by many.
SHORTEST, WORDS = 20, 3
#: A text that is in more files than this belongs to no product in particular.
MOST_FILES = 3
BINARY = re.compile(rb"[\x20-\x7e]{8,}")


def constants(path: Path) -> str:
    """All strings of a source file, docstrings left out."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return ""
    said = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }  # docstrings, and strings that do nothing
    return "\n".join(
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    )


def texts_of(product: str) -> Iterator[tuple[str, str]]:
    """File within a package, and what it may print."""
    root = SITE / product
    for path in sorted(root.rglob("*.py")):
        inner = path.relative_to(root).as_posix()
        if "/test" not in f"/{inner}" and not f"{product}/{inner}".startswith(LEFT_OUT):
            yield inner, constants(path)
    for path in sorted(root.rglob("*.so*")):
        found = BINARY.findall(path.read_bytes())
        yield path.name, b"\n".join(found).decode("ascii")


def worth(text: str) -> bool:
    """Whether a text is specific to a product."""
    return len(text) >= SHORTEST and len(re.findall(r"[A-Za-z]{2,}", text)) >= WORDS


class Library:
    """What the installed products may print."""

    def __init__(self) -> None:
        self.files: dict[str, list[tuple[str, str]]] = {}
        self.release: dict[str, str] = {}
        for product in PRODUCTS:
            if (SITE / product).is_dir():
                self.files[product] = list(texts_of(product))
                release = importlib.metadata.version(product.replace("_", "-"))
                self.release[product] = release.partition("+")[0]
        self.whole = {name: "\n".join(t for _, t in rows) for name, rows in self.files.items()}

    def source(self, signature: Signature) -> str:
        """Product, release and files whose wording a signature matches, "" if not known."""
        texts = necessary(signature.pattern)
        if not texts or not all(map(worth, texts)):
            return ""
        for product, files in self.files.items():
            if not all(text in self.whole[product] for text in texts):
                continue
            places = [[name for name, said in files if text in said] for text in texts]
            if all(0 < len(found) <= MOST_FILES for found in places):
                names = sorted({found[0] for found in places})
                if len(names) <= MOST_FILES:
                    return f"{product} {self.release[product]} {', '.join(names)}"
        return ""


def fill(path: Path, sources: dict[str, str]) -> int:
    """Writes sources into the signatures of a file, by pattern; returns how many."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    added = 0
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda node: -node.lineno):
        words = {word.arg: word.value for word in call.keywords}
        pattern = words.get("pattern")
        named = isinstance(call.func, ast.Name) and call.func.id == "Signature"
        if not named or not isinstance(pattern, ast.Constant) or "source" in words:
            continue
        source = sources.get(str(pattern.value))
        if source is not None and pattern.end_lineno is not None:
            lines.insert(pattern.end_lineno, f'        source="{source}",\n')
            added += 1
    path.write_text("".join(lines), encoding="utf-8")
    return added


def main() -> None:
    """Prints or writes the sources."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", type=Path, metavar="FILE")
    args = parser.parse_args()
    if args.write is not None:
        rows = args.write.read_text(encoding="utf-8").splitlines()
        found = {
            row.partition(": ")[2]: source.strip()
            for row, source in zip(rows[::2], rows[1::2], strict=True)
        }
        print(sum(fill(path, found) for path in sorted(PACK.rglob("*.py"))), file=sys.stderr)
        return
    library = Library()
    for unit in packs.load(builtin_only=True):
        for signature in unit.signatures:
            if not signature.source and (source := library.source(signature)):
                print(f"{unit.condition.name}: {signature.pattern}\n    {source}")


if __name__ == "__main__":
    main()
