{{- define "shadow-proxy.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name }}{{- else -}}{{ .Release.Name }}-{{ .Chart.Name }}{{- end -}}
{{- end -}}

{{/* Of the objects of one shard; call with (list $ name). A StatefulSet's name has at most 52 characters. */}}
{{- define "shadow-proxy.shardName" -}}
{{- $name := printf "%s-%s" (include "shadow-proxy.fullname" (index . 0)) (index . 1) -}}
{{- if gt (len $name) 52 -}}
{{- fail (printf "%s has %d characters, and 52 are allowed: use a shorter name of the release or of the shard" $name (len $name)) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "shadow-proxy.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "shadow-proxy.labels" -}}
{{ include "shadow-proxy.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "shadow-proxy.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The number at the end of an address. */}}
{{- define "shadow-proxy.port" -}}
{{- regexFind "[0-9]+$" . -}}
{{- end -}}

{{/*
The shards of the plan, as YAML: name, port that the pod listens at, and port of the Service. Those of a Redis Cluster listen at
consecutive ports; what CLUSTER replies name is one port for all where each has a name of its own.
*/}}
{{- define "shadow-proxy.shards" -}}
shards:
{{- with .Values.plan.cluster }}
{{- if not $.Values.clusterShards }}{{ fail "clusterShards is empty: list the shards that `shadow-proxy --plan … --check` prints" }}{{ end }}
{{- if .replicas }}{{ fail "plan.cluster.replicas is given, and the Services have no port for it: leave it out, reads go to the authority" }}{{ end }}
{{- $first := include "shadow-proxy.port" .listen | int }}
{{- $own := contains "{shard}" (.announce | default "") }}
{{- range $at, $name := $.Values.clusterShards }}
  - name: {{ $name }}
    port: {{ add $first $at }}
    servicePort: {{ if $own }}{{ include "shadow-proxy.port" $.Values.plan.cluster.announce }}{{ else }}{{ add $first $at }}{{ end }}
{{- end }}
{{- else }}
{{- range .Values.plan.shards }}
  - name: {{ .name }}
    port: {{ include "shadow-proxy.port" .listen }}
    servicePort: {{ include "shadow-proxy.port" .listen }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "shadow-proxy.tokenFile" -}}
/run/secrets/{{ .Values.adminToken.secretName }}/{{ .Values.adminToken.key }}
{{- end -}}

{{/* The plan, with what the chart sets; call with (list $ address-of-the-admin-HTTP). */}}
{{- define "shadow-proxy.plan" -}}
{{- $root := index . 0 -}}
{{- $admin := dict "listen" (index . 1) "tokenFile" (include "shadow-proxy.tokenFile" $root) -}}
{{- toYaml (merge (dict "admin" $admin "state" "/var/lib/shadow-proxy/state") (deepCopy $root.Values.plan)) -}}
{{- end -}}

{{/* The drain, and time to start it and to end. */}}
{{- define "shadow-proxy.graceSeconds" -}}
{{- $drainMs := dig "limits" "drainMs" 10000 .Values.plan | int -}}
{{- add (div (add $drainMs 999) 1000) 10 -}}
{{- end -}}
