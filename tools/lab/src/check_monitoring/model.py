"""Reads a dashboard into Grafana's published model of dashboards and compares what comes back.

Prints the fields that the model does not know or holds as another value, one a line. The exit
status is 3 if the package grafana-foundation-sdk is not installed.
"""

import json
import sys

try:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard
except ImportError:
    sys.exit(3)


def differences(written, read, path):
    """Yields the places at which the model lacks a value that the file has."""
    if isinstance(written, dict) and isinstance(read, dict):
        for name, value in written.items():
            if name in read:
                yield from differences(value, read[name], f"{path}.{name}")
            # The model leaves out fields with the value that they have anyway.
            elif value not in (None, "", [], {}, False):
                yield f"{path}.{name}: unknown"
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, (one, other) in enumerate(zip(written, read)):
            yield from differences(one, other, f"{path}[{number}]")
    elif written != read:
        yield f"{path}: {written!r} is read as {read!r}"


register_default_plugins()
with open(sys.argv[1], encoding="utf-8") as file:
    dashboard = json.load(file)
model = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
for difference in differences(dashboard, model, "dashboard"):
    print(difference)
