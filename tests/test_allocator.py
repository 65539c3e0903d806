import os
import platform
import subprocess
import sys

import pytest

from albert_lab.machine import allocator_environment

MEGABYTES = 64
PAGES = f"""
import resource, torch
torch.set_num_threads(1)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.ones({MEGABYTES}, 1 << 18).sum()
before = faults()
for _ in range(10):
    torch.ones({MEGABYTES}, 1 << 18).sum()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")
def test_a_process_reuses_the_memory_of_freed_tensors():
    environment = os.environ | allocator_environment()
    result = subprocess.run([sys.executable, "-c", PAGES], env=environment, capture_output=True, text=True, check=True)
    pages_of_one = MEGABYTES << 8  # of 4 KiB
    assert int(result.stdout) < pages_of_one  # by default, ten times as many


def test_the_users_settings_come_last_and_so_have_precedence(monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0")
    assert allocator_environment()["GLIBC_TUNABLES"].endswith(":glibc.malloc.hugetlb=0")
    monkeypatch.delenv("GLIBC_TUNABLES")
    assert allocator_environment()["GLIBC_TUNABLES"].startswith("glibc.malloc.")
