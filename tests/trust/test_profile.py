"""The seccomp profile allows by name and by argument, and nothing that a training script has no use for.

That the kernel keeps to it is shown by the attacks; this holds on machines of other architectures too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NEVER = """
    acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module fanotify_init fanotify_mark finit_module
    fsconfig fsmount fsopen fspick get_kernel_syms init_module io_cancel io_destroy io_getevents io_setup io_submit
    io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie
    mbind memfd_secret migrate_pages modify_ldt mount mount_setattr move_mount move_pages msgget name_to_handle_at
    nfsservctl open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root process_madvise process_vm_readv
    process_vm_writev ptrace quotactl quotactl_fd reboot request_key seccomp semget set_mempolicy setdomainname
    sethostname setns settimeofday shmget stime swapoff swapon sysfs syslog umount umount2 unshare uselib userfaultfd
    ustat vhangup vmsplice
"""


@pytest.fixture(scope="module")
def profile(repository: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((repository / "containers" / "seccomp.json").read_text("utf-8"))
    return loaded


def allowing(profile: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The rules that allow a call."""
    rules: list[dict[str, Any]] = profile["syscalls"]
    return [rule for rule in rules if name in rule["names"] and rule["action"] == "SCMP_ACT_ALLOW"]


def test_what_is_not_named_is_refused(profile: dict[str, Any]) -> None:
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert [name for name in NEVER.split() if allowing(profile, name)] == []


def test_numbers_of_other_architectures_are_not_served(profile: dict[str, Any]) -> None:
    assert {one["architecture"] for one in profile["archMap"]} == {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"}
    assert not any(one["subArchitectures"] for one in profile["archMap"])


@pytest.mark.parametrize("name", ["clone", "socket", "socketpair", "personality", "mknod", "mknodat"])
def test_what_can_be_abused_is_allowed_by_its_arguments_alone(profile: dict[str, Any], name: str) -> None:
    rules = allowing(profile, name)
    assert rules
    assert all(rule["args"] for rule in rules)


def test_no_new_namespace_comes_of_a_clone(profile: dict[str, Any]) -> None:
    flags = 0
    for bit in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        flags |= bit
    (rule,) = allowing(profile, "clone")
    assert rule["args"] == [{"index": 0, "value": flags, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    (hidden,) = (rule for rule in profile["syscalls"] if "clone3" in rule["names"])
    assert (hidden["action"], hidden["errnoRet"]) == ("SCMP_ACT_ERRNO", 38)
