import pytest

from fedrain.paper import load_results
from tests.paper import RESULTS


@pytest.fixture(scope="session")
def results():
    return load_results(RESULTS)
