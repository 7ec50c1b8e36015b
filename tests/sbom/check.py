"""Validates a bill of materials against the published schema of CycloneDX, and looks whether each foreign crate is told apart."""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = open(sys.argv[1], encoding="utf-8").read()
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
if error:
    sys.exit(f"not CycloneDX 1.5: {error}")
bill = json.loads(text)
crates = bill["components"]
foreign = [crate for crate in crates if "file://" not in crate["purl"]]
for crate in foreign:
    name = f"{crate['name']} {crate['version']}"
    if not crate["purl"].startswith(f"pkg:cargo/{crate['name']}@{crate['version']}"):
        sys.exit(f"{name}: {crate['purl']} is not its purl")
    if not any(hash["alg"] == "SHA-256" for hash in crate.get("hashes", [])):
        sys.exit(f"{name}: no hash")
    if not crate.get("licenses"):
        sys.exit(f"{name}: no licence")
if len(foreign) < 100:
    sys.exit(f"only {len(foreign)} foreign crates")
print(f"{len(crates)} components, {len(foreign)} of them foreign, each with purl, licence and hash")
