import warnings

import pytest


@pytest.fixture(scope="session")
def numbered(tmp_path_factory):
    """`numbered(n)`: paths of n files whose contents are their numbers."""
    root = tmp_path_factory.mktemp("numbered")
    result: list[str] = []

    def files(count):
        while len(result) < count:
            path = root / f"{len(result)}.bin"
            path.write_text(str(len(result)))
            result.append(str(path))
        return result[:count]

    return files


@pytest.fixture(autouse=True)
def _quiet_unfinished_epochs():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the epoch before was not finished")
        yield
