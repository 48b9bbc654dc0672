"""Every rule of tidy.py on a small tree that breaks it, and on one that does not."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import cpp
import layers
import tidy

LONG_BODY = "\n".join(["int f() {"] + ["  int a = 0;"] * 70 + ["}", ""])


def tree_with(files):
    """A root folder with the files that single_files() wants and those given."""
    root = pathlib.Path(tempfile.mkdtemp())
    needed = {path: f'#include "{name}"\n' for path, name in layers.SINGLE_FILES}
    for path, text in (needed | files).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


class Rules(unittest.TestCase):
    def found(self, files, **options):
        root = tree_with(files)
        self.addCleanup(shutil.rmtree, root)
        return tidy.check_tree(root, **options)

    def assert_rule(self, rule, line, path, text):
        items = self.found({path: text})
        self.assertEqual([item[:3] for item in items], [(path, line, rule)], items)

    def assert_clean(self, path, text):
        self.assertEqual(self.found({path: text}), [])

    def test_layer_arrows(self):
        for path, include in (
                ("src/kv/a.cc", '"model/gguf.h"'), ("src/kv/a.cc", '"kernels/isa.h"'),
                ("src/base/a.cc", '"kv/page_pool.h"'), ("src/tokenizer/a.cc", '"model/gguf.h"'),
                ("src/sampling/a.cc", '"engine/request.h"'), ("src/model/a.cc", '"kv/page_pool.h"'),
                ("src/graph/a.cc", '"backend/cpu/cpu_runner.h"'),
                ("src/graph/a.cc", '"kernels/matmul/rows.h"'),
                ("src/engine/a.cc", '"abi/guard.h"'), ("src/engine/a.cc", '"backend/cpu/probe.h"'),
                ("src/backend/cpu/a.cc", '"model/gguf.h"'), ("src/planner/a.cc", '"model/gguf.h"'),
                ("src/scheduler/a.cc", '"engine/engine.h"'), ("src/misc/a.cc", '"base/status.h"'),
                ("src/kv/a.cc", '"page_pool.h"'), ("src/kv/a.cc", '"../base/status.h"'),
                ("src/kv/a.cc", "<iostream>"), ("src/kv/a.cc", "<cassert>"),
                ("src/kv/a.cc", "<unistd.h>"), ("src/backend/cpu/a.cc", "<sys/mman.h>"),
                ("src/base/a.cc", '"optima/optima.h"'),
                ("kernels/rope/a.cc", "<vector>"), ("kernels/rope/a.cc", '"base/status.h"'),
                ("examples/cli/a.cc", '"engine/engine.h"'), ("examples/c/a.c", '"src/abi/guard.h"'),
                ("kernels/rope/a.cc", '"kernels/cuda_host/fiber.h"'), ("kernels/cuda/a.cc", "<vector>"),
                ("kernels/rope/a.cc", "<cuda_fp16.h>"), ("kernels/cuda_host/a.cc", '"base/text.h"'),
                ("examples/cli/a.cc", '"../../src/base/text.h"')):
            self.assert_rule("layers", 2, path, f"//\n#include {include}\n")
        for path, include in (
                ("src/kv/a.cc", '"base/status.h"'), ("src/kv/sparse/a.cc", '"kv/page_pool.h"'),
                ("src/engine/a.cc", '"model/arch/llama.h"'), ("src/abi/a.cc", '"engine/engine.h"'),
                ("src/abi/a.cc", '"optima/optima.h"'), ("src/engine/a.cc", '"backend/backend.h"'),
                ("src/model/a.cc", '"graph/graph.h"'), ("src/planner/a.cc", '"model/config.h"'),
                ("src/graph/a.cc", '"kernels/rope/rope.h"'), ("src/kv/a.cc", "<vector>"),
                ("src/base/a.cc", "<sys/auxv.h>"), ("src/model/a.cc", '"kernels/quant/weight_type.h"'),
                ("kernels/rope/a.cc", '"kernels/rope/rope.h"'), ("kernels/rope/a.cc", "<math.h>"),
                ("kernels/cuda_host/a.cc", "<thread>"), ("kernels/a/a.cc", "<float.h>"),
                ("examples/c/a.c", '"optima/optima.h"'), ("examples/cli/a.cc", '"commands.h"')):
            self.assert_clean(path, f"//\n#include {include}\n")

    def test_stale_single_file(self):
        path, _ = next(iter(layers.SINGLE_FILES))
        items = self.found({path: "int a;\n"})
        self.assertEqual([item[2] for item in items], ["stale"])

    def test_lengths(self):
        self.assert_rule("file length", 1, "src/kv/a.cc", "int a;\n" * 501)
        self.assert_clean("src/kv/a.cc", "int a;\n" * 500)
        self.assert_rule("function length", 1, "src/kv/a.cc", LONG_BODY)
        self.assert_clean("src/kv/a.cc", LONG_BODY.replace("  int a = 0;\n", "", 2))
        self.assert_rule("function length", 1, "tests/a.py",
                         "def f():\n" + "    a = 0\n" * 70)
        self.assert_rule("columns", 1, "src/kv/a.cc", "int " + "a" * 96 + ";\n")
        self.assert_clean("src/kv/a.cc", "int " + "a" * 95 + ";\n")

    def test_exceptions_only_shrink(self):
        listed = "tests/tidy/exceptions.txt"
        function = "function src/kv/a.cc f "
        self.assertEqual(self.found({"src/kv/a.cc": LONG_BODY, listed: function + "72\n"}), [])
        for files, rule in (({"src/kv/a.cc": LONG_BODY, listed: function + "71\n"},
                             "function length"),
                            ({"src/kv/a.cc": "int a;\n", listed: function + "72\n"}, "stale"),
                            ({listed: "file src/kv/gone.cc 600\n"}, "stale"),
                            ({"src/kv/a.cc": "int a;\n" * 801, listed: "file src/kv/a.cc 900\n"},
                             "file length")):
            self.assertEqual([item[2] for item in self.found(files)], [rule])

    def test_banned_words(self):
        for text in ("  abort();", "  std::abort();", "  ::exit(1);", "  if (a) exit(1);",
                     "  return abort();", "  getenv(\"A\");", "  std::getenv(a);",
                     "  printf(\"a\");", "  std::fprintf(f, a);", "  puts(a);",
                     "  std::cout << a;", "  std::cerr << a;", "  assert(a);",
                     "  std::terminate();"):
            self.assert_rule("words", 2, "src/kv/a.cc", f"//\n{text}\n")
            self.assert_rule("words", 2, "kernels/rope/a.cc", f"//\n{text}\n")
            self.assert_clean("examples/cli/a.cc", f"//\n{text}\n")
        for word in ("TO" "DO", "FIX" "ME", "X" "XX"):
            self.assert_rule("words", 1, "src/kv/a.cc", f"// {word} later\n")
            self.assert_rule("words", 1, "tests/kv/a.cc", f"// {word} later\n")
        for text in ("// abort() printf() in a comment", 'auto a = "printf(";',
                     "void abort();", "void Table::abort() { truncate(length_); }",
                     "  table.abort();", "  table->abort();", "static_assert(true);",
                     "  std::snprintf(a, 2, b);", "  on_exit_group(1);"):
            self.assert_clean("src/kv/a.cc", text + "\n")

    def test_spaces_and_characters(self):
        self.assert_rule("spaces", 1, "src/kv/a.cc", "int a; \n")
        self.assert_rule("spaces", 1, "src/kv/a.cc", "\tint a;\n")
        self.assert_rule("spaces", 1, "docs/a.md", "a\r\n")
        self.assert_rule("spaces", 1, "src/kv/a.cc", "int a;")
        self.assert_rule("headers", 1, "src/kv/a.h", "int a;\n")
        self.assert_clean("src/kv/a.h", "#pragma once\n")
        self.assert_rule("characters", 1, "src/kv/a.cc", 'auto a = "\u00e9";\n')
        self.assert_clean("tests/kv/a.cc", 'auto a = "\u00e9";\n')
        self.assert_rule("characters", 1, "tests/kv/a.cc", "int \u00e9;\n")
        self.assert_rule("characters", 1, "src/kv/a.cc", "// caf\u00e9\n")
        self.assert_clean("src/kv/a.cc", "// a \u2229 b \u2264 c \u00d7 d\n")

    def test_machine_paths(self):
        for text in ("/wo" "rk/main", "/ho" "me/someone", "/ro" "ot/a", "pypi.o" "rg"):
            self.assert_rule("paths", 1, "docs/a.md", f"see {text}\n")
        self.assert_clean("docs/a.md", "tests/work/a and https://example.org/home/\n")

    def test_what_tools_make_is_left_alone(self):
        self.assert_clean("bindings/rust/target/release/deps.json", "{}")
        self.assert_rule("spaces", 1, "bindings/rust/src/deps.json", "{}")

    def test_generated_files_are_left_alone(self):
        self.assert_clean("src/abi/a.inc", "// Generated by a.py: do not edit.\n" + "int a; \n" * 900)

    def test_a_finding_names_its_place(self):
        root = tree_with({"src/kv/a.cc": "int a;\nint b; \n"})
        self.addCleanup(shutil.rmtree, root)
        script = pathlib.Path(tidy.__file__)
        run = subprocess.run([sys.executable, "-B", script, "--root", root], capture_output=True,
                             text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stdout.startswith("src/kv/a.cc:2: spaces: "), run.stdout)

    def test_cuda_kernels(self):
        seen = {"tests/cuda/all_kernels.cu": '#include "kernels/a/a.cuh"\n'}
        for line in ("  __syncthreads();", "  int i = threadIdx.x;", "  asm(\"\");",
                     "  k<<<1, 2>>>(3);", "  namespace cg = cooperative_groups;",
                     "  cuda::std::array<int, 3> a;", "__global__ void k();"):
            items = self.found(seen | {"kernels/a/a.cuh": f"#pragma once\n{line}\n"})
            self.assertEqual({item[:3] for item in items}, {("kernels/a/a.cuh", 2, "cuda")}, line)
        kernel = "#pragma once\nCE_GLOBAL(32) f(int a) {\n  if (a) %s;\n}\n"
        for body, wanted in (("return", [("kernels/a/a.cuh", 2, "cuda")]), ("a = 1", [])):
            items = self.found(seen | {"kernels/a/a.cuh": kernel % body})
            self.assertEqual([item[:3] for item in items], wanted)
        self.assert_rule("cuda", 1, "kernels/a/a.cuh", "#pragma once\n")  # nvcc never sees it
        through = {"kernels/a/a.cuh": '#pragma once\n#include "kernels/a/b.cuh"\n',
                   "kernels/a/b.cuh": "#pragma once\nCE_DEVICE int f() { return 1; }\n"}
        self.assertEqual(self.found(seen | through), [])
        self.assertEqual([item[3] for item in self.found(seen | {"kernels/a/a.cuh": "int a;\n"})],
                         ["no #pragma once"])

    def test_leaked_symbols(self):
        lines = ("_ZN6optima7kernels4avx22f1Ev W 0 10", "_ZN6optima7kernels4avx23runEv T 0 10",
                 "_ZNK6optima7kernels4avx21A1fEv W 0 10", "_ZNSt6vectorIiE W 0 10",
                 "_ZN6optima7kernels1fEv W 0 10", "_ZTIN6optima7kernels6avx5121AE V 0 10",
                 "_ZN6optima4halfE u 0 10", "_ITM_deregisterTMCloneTable w", "malloc U")
        self.assertEqual(tidy.leaked_symbols("\n".join(lines), "avx2"),
                         ["_ZNSt6vectorIiE", "_ZN6optima7kernels1fEv",
                          "_ZTIN6optima7kernels6avx5121AE", "_ZN6optima4halfE"])
        self.assertEqual(tidy.leaked_symbols("_ZN6optima7kernels8neon_dot1fEv W 0 10\n"
                                             "_ZN6optima7kernels4neon1fEv W 0 10", "neon_dot"),
                         ["_ZN6optima7kernels4neon1fEv"])

    @unittest.skipUnless(shutil.which("g++") and shutil.which("nm"), "needs g++ and nm")
    def test_leaked_symbols_of_a_real_object(self):
        root = tree_with({"kernels/rope/rope_avx2.cc":
                          "inline int leak(int a) { return a + 1; }\n"
                          "int (*take())(int) { return leak; }\n"
                          "namespace optima::kernels::avx2 {\n"
                          "inline int kept(int a) { return a + 1; }\n"
                          "int (*take())(int) { return kept; }\n}\n"})
        self.addCleanup(shutil.rmtree, root)
        self.assertEqual([item[3] for item in tidy.check_tree(root, build=root)],
                         ["there is no object file of a kernel in the build folder"])
        folder = root / "kernels/CMakeFiles/optima_kernels.dir/rope"
        folder.mkdir(parents=True)
        subprocess.run(["g++", "-c", root / "kernels/rope/rope_avx2.cc", "-o",
                        folder / "rope_avx2.cc.o"], check=True)
        # Objects of another architecture are not missed.
        (root / "kernels/rope/rope_neon_dot.cc").write_text("//\n", encoding="utf-8")
        self.assertEqual([item[3] for item in tidy.check_tree(root, build=root)],
                         ["weak symbol outside its namespace: _Z4leaki"])


class Cpp(unittest.TestCase):
    def test_views(self):
        text = 'a = "x // y"; // "c"\nb = \'"\'; /* d\n */ c = R"(e")" + 1\'000; f = \'\\\'\';\n'
        views = cpp.views(text)
        self.assertEqual(views["code"].split(), "a = \" \"; b = ' '; c = R\" \" + 1'000; f = ' ';"
                         .split())
        self.assertEqual(views["comment"].split(), ["//", '"c"', "/*", "d", "*/"])
        self.assertEqual({len(view) for view in views.values()}, {len(text)})

    def names(self, text):
        return [name for name, _, _ in cpp.functions(cpp.views(text)["code"])]

    def test_functions(self):
        text = """
namespace a::b {
struct S {
  int x{0};
  S() : x{1}, y_(2) { f(); }
  bool operator==(const S&) const = default;
  int get() const { return x; }
  explicit operator bool() const { return true; }
  enum class E : int { one, two };
};
constexpr int kTable[] = {1, 2, 3};
template <typename T>
auto f(T v = {}) -> int {
  if (v) { for (;;) {} }
  auto g = [](int) { return 1; };
  return g(1);
}
#define OPEN {
S::S(int a)
    : x{a} {
}
const auto lambda = [](int a) { return a; };
TEST(Suite, Name) { EXPECT_TRUE(true); }
extern "C" {
int c(void) { return 1; }
}
struct S* make(int a) { return nullptr; }
}  // namespace a::b
"""
        self.assertEqual(self.names(text), ["S", "get", "operatorbool", "f", "S::S", "(lambda)",
                                            "Suite.Name", "c", "make"])

    def test_function_lines(self):
        text = "int a;\n\nint f(int b,\n      int c)\n{\n  return b;\n}\n"
        self.assertEqual(cpp.functions(cpp.views(text)["code"]), [("f", 3, 7)])


if __name__ == "__main__":
    unittest.main()
