"""The words of C++ checks, as the harvest of the error index reads them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "native_messages.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("native_messages", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NATIVE = load()


@pytest.mark.parametrize(
    ("source", "exception", "text"),
    [
        (
            'TORCH_CHECK(a.ok(x, 1), "rank ", r, " has no " "group");',
            "RuntimeError",
            "rank {} has no group",
        ),
        ('TORCH_CHECK_VALUE(ok, "no // comment");', "ValueError", "no // comment"),
        pytest.param(
            'C10_THROW_ERROR(DistStoreError, fmt::format("wait timeout after {}ms", n));',
            "DistStoreError",
            "wait timeout after {}ms",
            id="an exception class and a format",
        ),
        pytest.param(
            'TORCH_CHECK_WITH(DistBackendError, ok(), "group " + name + " is gone");',
            "DistBackendError",
            "group {} is gone",
            id="parts that are joined",
        ),
        (
            'throw std::invalid_argument("no such backend: " + name);',
            "ValueError",
            "no such backend: {}",
        ),
        (
            '#define CHECK(x) TORCH_CHECK(x.ok(), #x " must be here")',
            "RuntimeError",
            "{} must be here",
        ),
        (
            "TORCH_CHECK(n ==\n    size(0));",
            "RuntimeError",
            "Expected n == size(0) to be true, but got false.",
        ),
        ('AT_ASSERTM(ok, "one " "size");', "RuntimeError", "one size"),
        ("assert(fd != -1);", "NativeAssert", "Assertion `fd != -1' failed."),
        pytest.param(
            'fprintf(stderr, "no kernel (m: %d, error: %ld)\\n", m, int(e));',
            "log.stderr",
            "no kernel (m: {}, error: {}) {}",
            id="placeholders of printf",
        ),
        (
            'std::cerr << "cannot lock " << n << " bytes" << std::endl;',
            "log.stderr",
            "cannot lock {} bytes{}",
        ),
        ('printf("open of %s failed\\n", name);', "log.stderr", "open of {} failed {}"),
    ],
)
def test_a_check_has_an_exception_and_words(source: str, exception: str, text: str) -> None:
    (found,) = NATIVE.messages(f"int f(int a) {{\n  {source}\n}}\n" if source[0] != "#" else source)
    assert (found.exception, found.text.replace(NATIVE.HOLE, "{}")) == (exception, text)


def test_a_message_has_its_line_and_function() -> None:
    source = (
        '/* a\n b */\nstd::vector<int> ns::run(\n    int a) {\n  TORCH_CHECK(a, "is gone");\n}\n'
    )
    (found,) = NATIVE.messages(source)
    assert (found.line, found.function, found.condition) == (5, "run", "a")


@pytest.mark.parametrize(
    "source",
    ['// TORCH_CHECK(ok, "an old check");', "TORCH_CHECK(false);", "static_assert(n > 3);", 'printf("%d steps", n);', 'throw std::bad_alloc("x");', 'TORCH_CHECK(ok, "open'],
)  # fmt: skip
def test_what_has_no_message_is_left_out(source: str) -> None:
    assert list(NATIVE.messages(source)) == []
