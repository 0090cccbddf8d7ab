"""Tests of loading models by the kind in their manifests."""

import json
from dataclasses import fields

import pytest

from capr.documents import CaprError
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.kinds import KINDS, kind_of, load_model, read_manifest
from capr.runtime.manifest import Manifest
from capr.runtime.ranker import OnnxRanker
from capr.runtime.shipped import shipped


def test_the_manifest_decides_how_a_folder_is_loaded(tiny_encoder, tiny_ranker):
    assert isinstance(load_model(tiny_encoder), OnnxEncoder)
    assert isinstance(load_model(tiny_ranker, "ranker", threads=1), OnnxRanker)
    assert (kind_of(tiny_encoder).role, kind_of(tiny_ranker).role) == ("encoder", "ranker")
    assert read_manifest(tiny_ranker).kind == "ranker"


def test_a_model_of_another_role_is_refused(tiny_encoder, tiny_ranker):
    with pytest.raises(CaprError, match=r"has kind 'encoder', which is not a ranker. Fix: name the folder of a ranker"):
        load_model(tiny_encoder, "ranker")
    with pytest.raises(CaprError, match="which is not a reader"):
        read_manifest(tiny_ranker, "reader")


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_class_with_its_own_manifest(name):
    runner = KINDS[name].runner
    manifest = runner.read_manifest.__annotations__["return"]
    module = __import__(runner.__module__, fromlist=[manifest])
    assert issubclass(getattr(module, manifest), Manifest)
    assert {"name", "kind"} < {field.name for field in fields(getattr(module, manifest))}


@pytest.mark.shipped
@pytest.mark.parametrize("role", ["encoder", "ranker", "reader", "tagger"])
def test_the_models_that_ship_have_a_role_and_a_name(role):
    assert kind_of(shipped(role)).role == role
    assert read_manifest(shipped(role), role).name


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"kind": "crystal ball"}, r"has kind 'crystal ball'. Fix: use encoder, ranker, poly, reader, cdv, tagger"),
        ({"kind": ["encoder"]}, r"has kind \['encoder'\]. Fix: "),
        ([], r"it is not an object\). Fix: "),
    ],
)
def test_an_unknown_kind_is_an_error(tmp_path, record, message):
    (tmp_path / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(CaprError, match=message):
        load_model(tmp_path)


def test_a_folder_without_a_manifest_is_not_a_model(tmp_path):
    with pytest.raises(CaprError, match=r"is not a ranker: it has no manifest.json. Fix: "):
        load_model(tmp_path, "ranker")


@pytest.mark.parametrize("role", ["", "encoder", "ranker", "reader", "discourse", "tagger"])
def test_a_folder_that_does_not_exist_is_named(tmp_path, role):
    with pytest.raises(CaprError, match=r"^there is no folder .*nothing\. Fix: name the folder"):
        load_model(tmp_path / "nothing", role)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_names_a_folder_that_does_not_exist(tmp_path, kind):
    (tmp_path / "file").touch()
    with pytest.raises(CaprError, match=r"^there is no folder .*nothing\. Fix: "):
        KINDS[kind].runner(tmp_path / "nothing")
    with pytest.raises(CaprError, match=r"file is a file, not a folder\. Fix: "):
        KINDS[kind].runner(tmp_path / "file")
