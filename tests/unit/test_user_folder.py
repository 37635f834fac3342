"""The folder of the user's configuration, which is found without platformdirs."""

from __future__ import annotations

import platformdirs
import pytest

from dsdoctor import files


@pytest.mark.parametrize("home", ["/home/ada", "/home/ada/", None, "", "relative"])
@pytest.mark.parametrize("named", ["/etc/ada", None, "", "relative"])
def test_it_is_that_of_platformdirs(
    home: str | None, named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("HOME", home), ("XDG_CONFIG_HOME", named)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert str(files.user_config_folder()) == platformdirs.user_config_dir("dsdoctor")
