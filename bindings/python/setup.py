"""Builds the library with CMake, from the sources that this folder is part of, into the wheel. All
that is built lies in the build folder of the sources' root."""
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/wheel"
FILE_NAME = "libsitsoptima.so.1"


def release():
    text = (HERE / "sits_optima/_raw.py").read_text(encoding="utf-8")
    return re.search(r'^RELEASE = "(.+)"$', text, re.MULTILINE).group(1)


def build_library():
    """As the preset `release`, the library alone; returns its file. A build of that preset that is
    there already is brought up to date."""
    folder = ROOT / "build/release"
    if not (folder / "CMakeCache.txt").exists():
        folder = BUILD / "cmake"
        subprocess.run(["cmake", "--preset", "release", "-B", str(folder),
                        "-DOPTIMA_BUILD_TESTS=OFF", "-DOPTIMA_BUILD_PROGRAM=OFF"], cwd=ROOT,
                       check=True)
    subprocess.run(["cmake", "--build", str(folder), "--target", "sitsoptima"], check=True)
    return folder / "lib" / FILE_NAME


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            target = pathlib.Path(self.build_lib) / "sits_optima/lib"
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(build_library(), target / FILE_NAME)


class PlatformWheel(bdist_wheel):
    """Of one platform, as the library is, and of any Python 3, as ctypes is."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


if not (ROOT / "src/abi/optima.yaml").exists():
    raise SystemExit(f"{ROOT} does not hold the library's sources: install from a clone of them, "
                     "with `pip install .` in bindings/python")
BUILD.mkdir(parents=True, exist_ok=True)
setup(version=release(), distclass=BinaryDistribution,
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel},
      options={"build": {"build_base": str(BUILD / "setuptools")},
               "egg_info": {"egg_base": str(BUILD)}})
