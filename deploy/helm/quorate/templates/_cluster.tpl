{{/* The initial voters, the same text on every node: id@host:port:directory-id, as `quorate format` takes it.
     The directory ids follow from the cluster's id, so that no node has to know what another one drew. A volume
     that was lost and formatted again with the same id never votes (docs/operations/replace-a-disk.md). */}}
{{- define "quorate.initialVoters" -}}
{{- $voters := list -}}
{{- range $id := until (int .Values.initialVoters) -}}
{{- $directory := printf "%s/%d" $.Values.clusterId $id | sha256sum | trunc 16 | b64enc | trimSuffix "==" -}}
{{- $host := printf "%s-%d.%s" (include "quorate.fullname" $) $id (include "quorate.domain" $) -}}
{{- $voters = append $voters (printf "%d@%s:%s:%s" $id $host (include "quorate.peerPort" $) $directory) -}}
{{- end -}}
{{- join "," $voters -}}
{{- end -}}

{{- define "quorate.bootstrapServers" -}}
{{- $servers := list -}}
{{- range $id := until (int .Values.initialVoters) -}}
{{- $servers = append $servers (printf "%s-%d.%s:%s" (include "quorate.fullname" $) $id (include "quorate.domain" $) (include "quorate.peerPort" $)) -}}
{{- end -}}
{{- join "," $servers -}}
{{- end -}}

{{/* Every setting of a node as environment variables; also for commands in the pod. */}}
{{- define "quorate.environment" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: QUORATE__NODE__ID
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}
- name: QUORATE__NODE__DATA_DIR
  value: /var/lib/quorate/data
- name: QUORATE__LISTENERS__CLIENT
  value: "0.0.0.0:9190"
- name: QUORATE__LISTENERS__ADVERTISED_CLIENT
  value: "$(POD_NAME).{{ include "quorate.domain" . }}:9190"
{{- $listeners := default dict .Values.config.listeners }}
{{- range $name := list "peer" "sasl" }}
{{- $port := include "quorate.port" (dict "root" $ "name" $name) }}
{{- if and $port (not (get $listeners (printf "advertised_%s" $name))) }}
- name: QUORATE__LISTENERS__ADVERTISED_{{ upper $name }}
  value: "$(POD_NAME).{{ include "quorate.domain" $ }}:{{ $port }}"
{{- end }}
{{- end }}
- name: QUORATE__METRICS__LISTEN
  value: "0.0.0.0:9191"
{{- if not (get (default dict .Values.config.bootstrap) "servers") }}
- name: QUORATE__BOOTSTRAP__SERVERS
  value: {{ include "quorate.bootstrapServers" . | quote }}
{{- end }}
- name: QUORATE__SECURITY__MODE
  value: {{ .Values.security.mode }}
{{- if eq .Values.security.mode "insecure" }}
- name: QUORATE__SECURITY__UNSAFE_INSECURE_LISTENERS
  value: "true"
{{- else }}
- name: QUORATE__TLS__CA_FILE
  value: /etc/quorate/tls/ca.pem
- name: QUORATE__TLS__CERT_FILE
  value: "/etc/quorate/tls/voter-$(QUORATE__NODE__ID).pem"
- name: QUORATE__TLS__KEY_FILE
  value: "/etc/quorate/tls/voter-$(QUORATE__NODE__ID).key"
- name: QUORATE__TLS__REQUIRE_CLIENT_CERT
  value: "true"
- name: QUORATE__TLS__NODE_NAME
  value: {{ .Values.tls.nodeName | quote }}
{{- if .Values.metrics.tls }}
- name: QUORATE__METRICS__TLS
  value: "true"
{{- end }}
{{- if .Values.metrics.tokenSecret.name }}
- name: QUORATE__METRICS__TOKEN_FILE
  value: /etc/quorate/metrics/token
{{- end }}
{{- $operators := .Values.security.operators }}
{{- if .Values.tls.operator }}
{{- $operators = append $operators (printf "User:%s" .Values.tls.operator) | uniq }}
{{- end }}
{{- if $operators }}
- name: QUORATE__SECURITY__OPERATORS
  value: {{ join "," $operators | quote }}
{{- end }}
- name: QUORATE_TLS_CA
  value: /etc/quorate/tls/ca.pem
- name: QUORATE_TLS_CERT
  value: "/etc/quorate/tls/{{ default "voter-$(QUORATE__NODE__ID)" .Values.tls.operator }}.pem"
- name: QUORATE_TLS_KEY
  value: "/etc/quorate/tls/{{ default "voter-$(QUORATE__NODE__ID)" .Values.tls.operator }}.key"
{{- end }}
- name: QUORATE_BOOTSTRAP
  value: "$(POD_NAME).{{ include "quorate.domain" . }}:9190"
{{- range $section, $keys := .Values.config }}
{{- range $key, $value := $keys }}
- name: QUORATE__{{ upper $section }}__{{ upper $key }}
  value: {{ include "quorate.text" $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A value as the environment has it: numbers without exponent, lists with commas. */}}
{{- define "quorate.text" -}}
{{- if kindIs "slice" . -}}
{{- $parts := list -}}
{{- range . }}{{ $parts = append $parts (include "quorate.text" .) }}{{ end -}}
{{- join "," $parts -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}
