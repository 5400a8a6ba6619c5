"""The metadata of pyramids against the strict schema of OME-Zarr 0.5: make check-pyramid runs this."""

import json
import os

import numpy
import pytest

import tarn.pyramid


@pytest.fixture(scope="module")
def validators():
    """Those that ngff-zarr brings along. Only this check needs these packages, and make test collects the file, too."""
    import jsonschema
    import ngff_zarr
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012
    folder = os.path.join(os.path.dirname(ngff_zarr.__file__), "spec", "0.5", "schemas")
    schemas = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            schemas[name] = json.load(file)
    resources = [(schema["$id"], DRAFT202012.create_resource(schema)) for schema in schemas.values()]
    registry = Registry().with_resources(resources)
    return {name: jsonschema.Draft202012Validator(schema, registry=registry) for name, schema in schemas.items()}


def attributes_of(folder, axes, **options):
    shape = [3 if a in "tc" else 40 for a in axes]
    numpy.save(folder / "x.npy", numpy.ones(shape, "u2"))
    tarn.pyramid.write(folder / "x.npy", folder / "out", axes=axes, levels=3, factor=2, workers=1, **options)
    return json.loads((folder / "out" / "zarr.json").read_text())["attributes"]


@pytest.mark.parametrize("axes", ["yx", "zyx", "tyx", "cyx", "czyx", "tczyx"])
@pytest.mark.parametrize("options", [{}, {"op": "mode", "skip": 0, "min_count": 2, "unit": "micrometer", "name": "n"},
                                     {"scale": {"x": 0.1, "y": 0.3}, "level_from": "base", "edge": "trim"}])
def test_strict_schema(validators, tmp_path, axes, options):
    validators["strict_image.schema"].validate(attributes_of(tmp_path, axes, **options))


@pytest.mark.parametrize("break_it", [
    lambda image: image.pop("type"), lambda image: image.pop("metadata"), lambda image: image.pop("name"),
    lambda image: image["axes"].pop(),
    lambda image: image["datasets"][0]["coordinateTransformations"].pop(0)])
def test_the_schema_notices(validators, tmp_path, break_it):
    attributes = attributes_of(tmp_path, "tyx")
    break_it(attributes["ome"]["multiscales"][0])
    from jsonschema import ValidationError
    with pytest.raises(ValidationError):
        validators["strict_image.schema"].validate(attributes)
