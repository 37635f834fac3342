"""Compiles and links a program with a library.

    python prove_library.py HEADER LIBRARY

Stdlib only, Python 3.8 and later. Exit status 0 = it works.
"""

import os
import shutil
import subprocess
import sys
import tempfile


def main() -> None:
    header, library = sys.argv[1:3]
    mine = "dsdoctor-%s-%d-" % (os.environ.get("DSDOCTOR_RUN", "0"), os.getpid())
    folder = tempfile.mkdtemp(prefix=mine)  # the name allows removal if this process is killed
    try:
        source = os.path.join(folder, "proof.c")
        with open(source, "w") as file:
            file.write("#include <%s>\nint main(void) { return 0; }\n" % header)
        compiler = (os.environ.get("CC") or "cc").split()
        argv = [*compiler, source, "-o", os.path.join(folder, "proof"), "-l" + library]
        sys.exit(subprocess.run(argv, check=False).returncode)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
