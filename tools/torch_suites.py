#!/usr/bin/env python3
"""PyTorch's own tests of pooling, with tarn in place of PyTorch's pools.

usage: tools/torch_suites.py <checkout of pytorch> [suite]...

Runs every test whose name has "pool" in it, inside `tarn.torch.patch()`. What fails is run again without
it: tests that fail there, too, say nothing about tarn. The rest must be in INTENDED below, which
docs/python.md explains. The checkout should be of the version of torch that is installed; of a
checkout only the folder test/ is needed. Ends with 1 if a test fails that should not.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SUITES = ["nn/test_pooling.py", "test_ops.py", "test_ops_gradients.py", "test_ops_fwd_gradients.py",
          "test_ops_jit.py", "functorch/test_ops.py", "functorch/test_vmap.py", "test_jit.py"]

# Patterns of names of tests and what they say, and why they fail.
INTENDED = {
    r"test_(Adaptive)?MaxPool[123]d_indices": "indices may be overwritten before the backward",
    r"test_adaptive_pooling_no_suppot_input_cpu_u?int": "integers are pooled",
    r"(?s)test_dtypes_nn_functional_\w*_(un)?pool[123]d\w* .*worked in forward but are not listed": "integers are pooled",
    r"test_cow_input_nn_functional_(adaptive_(avg|max)|max)_(un)?pool[123]d\w* .*unexpectedly materializes":
        "what goes by the operators (indices, unpool, sizes of None) takes a lazy clone's memory for its own",
    r"test_max_pool1d_corner_cases": "a window without a cell is 0, not -inf",
    r"test_max_unpool_invalid_output_size": "inside torch.compile the ValueError is not wrapped in a RuntimeError",
    # Eager mode pools them; the model that is traced has PyTorch's pools, which refuse.
    r"test_custom_rules_ints_nn_functional_(adaptive_(avg|max)|avg)_pool[123]d": "integers are pooled",
    # Marked as expected failures: PyTorch has no rule for vmap of max_unpool, and of the second gradient of max_pool2d.
    r"(vmap|op_has_batch_rule)\w*_max_(un)?pool[123]d\w* .*Unexpected success": "vmap works",
}


def only_pools(init):
    """OpInfo tests of other operators are not even made: making them takes minutes. A list must not be
    empty; a test of its first operator has no "pool" in its name and is not run."""

    def wrapped(self, op_list, **options):
        op_list = list(op_list)
        init(self, [op for op in op_list if "pool" in op.formatted_name] or op_list[:1], **options)

    return wrapped


if __name__ == "torch_suites":  # as a plugin of pytest, before any test is collected
    if "TARN_PATCH" in os.environ:  # and before OpInfo takes the functions
        import tarn.torch
        context = tarn.torch.patch()
        context.__enter__()
    from torch.testing._internal import common_device_type, common_utils
    # As PyTorch's conftest.py: test_jit.py wants to know its executor. Older versions do it when imported.
    getattr(common_utils, "parse_cmd_line_args", lambda: None)()
    common_device_type.ops.__init__ = only_pools(common_device_type.ops.__init__)


def run(folder, arguments, patched):
    """The names of the tests that passed, and those that failed with what they say. None if nothing could be run."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch, "report.xml")
        path = [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", f"--junitxml={report}",
                   "-o", "junit_family=xunit1", "-p", "torch_suites", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)),
                                   "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu", **({"TARN_PATCH": "1"} if patched else {})})
        if done.returncode not in (0, 1) or not report.exists():
            print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
            return None
        passed, failed = [], {}
        for case in ElementTree.parse(report).iter("testcase"):
            found = {child.tag: f"{child.get('message')} {child.text}" for child in case}
            name = "::".join([*case.get("classname").split(".")[-1:], case.get("name")])
            if found.keys() & {"failure", "error"}:
                failed[name] = found.get("failure") or found["error"]
            elif "skipped" not in found:
                passed.append(name)
        return passed, failed


def reason(name, words):
    return next((why for pattern, why in INTENDED.items() if re.search(pattern, f"{name} {words}")), None)


def check(folder, suite):
    """Runs a suite and prints what came of it; the number of tests that fail and should not."""
    result = run(folder, ["-k", "pool", suite], True)
    if result is None:
        print(f"{suite}: could not be run")
        return 1
    passed, failed = result
    again = run(folder, [f"{suite}::{name}" for name in failed], False) if failed else ([], {})
    theirs = failed if again is None else again[1]
    ours = [name for name in failed if name not in theirs]
    intended = [name for name in ours if reason(name, failed[name])]
    wrong = [name for name in ours if name not in intended]
    print(f"{suite}: {len(passed)} passed, {len(intended)} differ as intended, {len(theirs)} fail without "
          f"tarn, too, {len(wrong)} FAILED", flush=True)
    for name in wrong:
        print(f"  {name}")
    return len(wrong) + (again is None)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1], "test")
    if not (folder / SUITES[0]).exists():
        sys.exit(f"{folder / SUITES[0]} is not there: give a checkout of pytorch")
    sys.exit(1 if sum(check(folder, suite) for suite in sys.argv[2:] or SUITES) else 0)


if __name__ == "__main__":
    main()
