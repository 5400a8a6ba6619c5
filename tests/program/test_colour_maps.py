"""The colour maps: control points as derived, and steps that look alike."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest

from conftest import SOURCE

spec = importlib.util.spec_from_file_location("colour_maps", f"{SOURCE}/tools/colour_maps.py")
colour_maps = importlib.util.module_from_spec(spec)
spec.loader.exec_module(colour_maps)


def points_in_source(name):
    source = pathlib.Path(SOURCE, "tool/colour_map.c").read_text()
    block = re.search(name + r"\[COLOUR_POINTS\] = \{(.*?)\}", source, re.S)[1]
    return [tuple(bytes.fromhex(p)) for p in re.findall(r"0x([0-9a-f]{6})", block)]


def oklab(colours):
    """sRGB to Oklab, by its definition."""
    c = np.asarray(colours, float) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    lms = linear @ np.array([[0.4122214708, 0.2119034982, 0.0883024619],
                             [0.5363325363, 0.6806995451, 0.2817188376],
                             [0.0514459929, 0.1073969566, 0.6299787005]])
    return np.cbrt(lms) @ np.array([[0.2104542553, 1.9779984951, 0.0259040371],
                                    [0.7936177850, -2.4285922050, 0.7827717662],
                                    [-0.0040720468, 0.4505937099, -0.8086757660]])


@pytest.mark.parametrize("name", ["sequential", "diverging"])
def test_points(name):
    assert points_in_source(name) == colour_maps.control_points()[name]


@pytest.mark.parametrize("name", ["sequential", "diverging"])
def test_steps_look_alike(name):
    points = np.array(points_in_source(name), float)
    places = np.linspace(0, len(points) - 1, 65)
    colours = np.stack([np.interp(places, range(len(points)), points[:, k]) for k in range(3)], 1)
    steps = np.linalg.norm(np.diff(oklab(colours), axis=0), axis=1)
    assert steps.max() / steps.min() < 1.5
    lightness = np.diff(oklab(colours)[:, 0])
    assert (lightness > 0).all() if name == "sequential" else (lightness[:32] > 0).all() and (lightness[32:] < 0).all()
