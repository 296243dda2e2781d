"""Runs Datadog's OpenMetrics check once and prints what it sends, as JSON: datadog-check.py CONFIGURATION ENDPOINT.

It needs the package datadog-checks-base and what it imports.
"""

import json
import sys

import yaml
from datadog_checks.base import OpenMetricsBaseCheckV2
from datadog_checks.base.stubs import aggregator

with open(sys.argv[1], encoding="utf-8") as file:
    configuration = yaml.safe_load(file)
instance = {**configuration["instances"][0], "openmetrics_endpoint": sys.argv[2]}
error = OpenMetricsBaseCheckV2("openmetrics", configuration["init_config"] or {}, [instance]).run()
if error:
    sys.exit(error)
print(
    json.dumps(
        [
            {"name": sample.name, "value": sample.value, "tags": sample.tags}
            for name in aggregator.metric_names
            for sample in aggregator.metrics(name)
        ]
    )
)
