"""PyIceberg's properties become the stores' settings, and none of the secrets shows."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
from botocore.loaders import JSONFileLoader

from firnline.app.places import places_of
from firnline.app.stores import MOST_OPEN
from firnline.errors import PermanentStoreError
from firnline.policy.parse import Section
from firnline.stores.buckets import Buckets
from firnline.stores.keys import object_key
from firnline.stores.s3.places import open_s3
from firnline.stores.settings import S3Settings, azure_settings, gcs_settings, http_options, s3_settings, server_of

KEYS = {"s3.access-key-id": "somebody", "s3.secret-access-key": "a-secret"}


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path_factory.mktemp("aws") / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path_factory.mktemp("aws") / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


class TestS3Settings:
    def test_every_name_is_read(self) -> None:
        said = {
            "s3.endpoint": "http://here:9000",
            "s3.region": "eu-north-1",
            "s3.access-key-id": "a",
            "s3.secret-access-key": "b",
            "s3.session-token": "c",
            "s3.profile-name": "p",
            "s3.role-arn": "arn",
            "s3.role-session-name": "me",
            "s3.anonymous": "True",
            "s3.force-virtual-addressing": "true",
            "s3.proxy-uri": "http://proxy",
            "s3.connect-timeout": "1.5",
            "s3.request-timeout": "7",
        }
        assert s3_settings(said) == S3Settings(
            "http://here:9000", "eu-north-1", "a", "b", "c", "p", "arn", "me", True, True, "http://proxy", 1.5, 7.0
        )

    def test_what_a_client_says_stands_in_for_what_s3_does_not(self) -> None:
        settings = s3_settings({"client.region": "r", "client.access-key-id": "a", "s3.access-key-id": "mine"})
        assert (settings.region, settings.access_key_id) == ("r", "mine")

    def test_nothing_said_is_nothing_set(self) -> None:
        assert s3_settings({"uri": "sqlite://", "warehouse": "s3://x"}) == S3Settings()

    @pytest.mark.parametrize(
        ("said", "endpoint", "style"),
        [
            ({}, False, "virtual"),
            ({}, True, "path"),
            ({"s3.force-virtual-addressing": "true"}, True, "virtual"),
            ({"s3.force-virtual-addressing": "false"}, False, "path"),
            ({"s3.path-style-access": "true"}, False, "path"),
            ({"s3.path-style-access": "true", "s3.force-virtual-addressing": "true"}, True, "virtual"),
        ],
    )
    def test_path_style_is_for_servers_of_ones_own(self, said: dict[str, str], endpoint: bool, style: str) -> None:
        assert s3_settings(said).addressing(endpoint) == style

    @pytest.mark.parametrize(
        "said", [{"s3.connect-timeout": "soon"}, {"s3.request-timeout": "-1"}, {"s3.anonymous": "perhaps"}]
    )
    def test_a_value_that_is_none_is_named(self, said: dict[str, str]) -> None:
        with pytest.raises(PermanentStoreError, match=next(iter(said))):
            s3_settings(said)

    def test_secrets_do_not_show(self) -> None:
        settings = s3_settings({**KEYS, "s3.session-token": "a-token", "s3.proxy-uri": "http://me:a-word@proxy"})
        for secret in ("a-secret", "a-token", "a-word", "somebody"):
            assert secret not in repr(settings)


class TestOthers:
    def test_azure(self) -> None:
        string = "DefaultEndpointsProtocol=https;AccountName=theirs;AccountKey=k==;EndpointSuffix=x"
        assert azure_settings({"adls.connection-string": string, "adls.account-name": "mine"}) == {
            "account_name": "mine",
            "account_key": "k==",
        }
        assert azure_settings({"adls.account-host": "a.blob.example", "adls.anon": "true"}) == {
            "endpoint": "https://a.blob.example",
            "skip_signature": "true",
        }

    def test_google(self) -> None:
        assert gcs_settings({"gcs.oauth2.token": "t", "gcs.service.host": "http://h", "gcs.project-id": "p"}) == {
            "bearer_token": "t",
            "base_url": "http://h",
        }

    def test_plain_http_is_allowed_only_where_it_is_said(self) -> None:
        assert http_options("http://here", 1, 2, None)["allow_http"]
        assert "allow_http" not in http_options("https://here", 1, 2, None)
        assert http_options(None, 1, 2, "http://p")["proxy_url"] == "http://p"


class TestOpening:
    def test_the_environment_says_what_the_catalog_does_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
        monkeypatch.setenv("AWS_REGION", "eu-north-1")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
        place = open_s3({})
        bucket = place.bucket("mine", 0)
        assert place.endpoint == "http://127.0.0.1:9000"
        assert bucket.config["endpoint"] == "http://127.0.0.1:9000"
        assert bucket.config["region"] == "eu-north-1"

    def test_a_profile_is_read(self, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
        config = tmp_path_factory.mktemp("aws") / "config"
        config.write_text(
            "[profile cold]\naws_access_key_id = a\naws_secret_access_key = b\nregion = eu-west-3\n"
            "endpoint_url = http://127.0.0.1:9001\n"
        )
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        place = open_s3({"s3.profile-name": "cold"})
        assert place.endpoint == "http://127.0.0.1:9001"
        assert place.client.meta.region_name == "eu-west-3"

    def test_aws_itself_has_no_endpoint(self) -> None:
        assert open_s3({**KEYS, "s3.region": "eu-north-1"}).endpoint is None

    def test_no_credentials_anywhere_says_where_they_could_be(self) -> None:
        with pytest.raises(PermanentStoreError, match="no credentials") as refused:
            Buckets({}).get(object_key("s3://mine/x"))
        assert "s3.access-key-id" in refused.value.hint

    def test_a_profile_that_does_not_exist_is_named(self) -> None:
        with pytest.raises(PermanentStoreError, match="nowhere"):
            open_s3({"client.profile-name": "nowhere"})

    def test_a_token_of_the_environment_does_not_follow_a_catalogs_keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", "of another account")
        frozen = open_s3(KEYS)._credentials.get_frozen_credentials()
        assert (frozen.access_key, frozen.secret_key, frozen.token) == ("somebody", "a-secret", None)

    def test_boto3_has_the_same_keys_as_obstore(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", "of another account")
        for token in (None, "one", "two"):
            place = open_s3({**KEYS, **({} if token is None else {"s3.session-token": token})})
            both = place._credentials, place.client._request_signer._credentials
            assert {(each.access_key, each.secret_key, each.token) for each in both} == {
                ("somebody", "a-secret", token)
            }

    def test_keys_that_a_catalog_hands_out_anew_cost_little(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A lake may have a thousand tables, each with keys of its own: what botocore knows of S3 is read once."""
        open_s3({**KEYS, "s3.session-token": "first"})
        read, load = list[str](), JSONFileLoader.load_file
        monkeypatch.setattr(JSONFileLoader, "load_file", lambda me, path: read.append(path) or load(me, path))
        open_s3({**KEYS, "s3.session-token": "second"})
        assert read == []

    def test_stores_that_keys_were_handed_out_for_do_not_pile_up(self) -> None:
        """A purge asks for the other tables' before each batch, and is given others every time."""
        stores = places_of(Section()).stores
        opened = [ref(stores.open({**KEYS, "s3.session-token": f"token {look}"})) for look in range(3 * MOST_OPEN)]
        gc.collect()
        assert 0 < sum(each() is not None for each in opened) <= MOST_OPEN
        assert stores.open({**KEYS, "s3.session-token": f"token {len(opened) - 1}"}) is opened[-1]()


class TestServers:
    def test_what_only_signs_in_tells_no_servers_apart(self) -> None:
        assert server_of({}) == server_of(KEYS) == server_of({"adls.client-secret": "x", "gcs.oauth2.token": "y"}) == ""
        there = {"s3.endpoint": "http://there:9000"}
        assert server_of(there) == server_of({**there, **KEYS})

    def test_every_setting_that_leads_elsewhere_tells_servers_apart(self) -> None:
        said: list[dict[str, str]] = [
            {},
            {"s3.endpoint": "http://here:9000"},
            {"s3.endpoint": "http://there:9000"},
            {"s3.region": "cn-north-1"},
            {"client.profile-name": "other"},
            {"gcs.service.host": "http://here:9000"},
            {"adls.account-name": "one"},
            {"adls.connection-string": "AccountName=two;AccountKey=a-secret"},
            {"adls.account-host": "here.example"},
        ]
        found = [server_of(each) for each in said]
        assert len(set(found)) == len(said)
        assert not any("secret" in each for each in found)
