{{/* Values that cannot work, with what to do. */}}
{{- define "quorate.check" -}}
{{- if not (regexMatch "^[A-Za-z0-9_-]{22}$" .Values.clusterId) -}}
{{- fail "clusterId: draw one with `quorate random-uuid`, and keep it: --set clusterId=..." -}}
{{- end -}}
{{- if lt (int .Values.replicas) (int .Values.initialVoters) -}}
{{- fail "replicas is below initialVoters: the first start needs all initial voters. Remove voters with `quorate quorum remove-voter` only after that; initialVoters stays." -}}
{{- end -}}
{{- if eq .Values.security.mode "insecure" -}}
{{- if not .Values.security.unsafeInsecureListeners -}}
{{- fail "security.mode is insecure: whoever reaches a port may do everything. Use tls or bound, or set security.unsafeInsecureListeners=true" -}}
{{- end -}}
{{- if or .Values.tls.secretName .Values.metrics.tls -}}
{{- fail "security.mode is insecure, but tls.secretName or metrics.tls is set: choose tls or bound" -}}
{{- end -}}
{{- else if not .Values.tls.secretName -}}
{{- fail (printf "security.mode is %s: tls.secretName names the Secret with ca.pem, voter-N.pem and voter-N.key (docs/operations/kubernetes.md)" .Values.security.mode) -}}
{{- end -}}
{{- if and .Values.tls.operator (ne .Values.security.mode "bound") -}}
{{- fail "tls.operator is for security.mode=bound; in other modes a node's own certificate may transfer leadership" -}}
{{- end -}}
{{- range $id := .Values.joining -}}
{{- if ge (int $id) (int $.Values.initialVoters) -}}
{{- fail (printf "joining: %d is no initial voter, so it joins anyway" (int $id)) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([a-z0-9-]*[a-z0-9])?$" (include "quorate.fullname" .)) -}}
{{- fail (printf "the name %s is no name of a Service: small letters, digits and -, beginning with a letter. Set fullnameOverride or another release name" (include "quorate.fullname" .)) -}}
{{- end -}}
{{- if and .Values.metrics.tokenSecret.name (not .Values.metrics.tls) -}}
{{- fail "metrics.tokenSecret needs metrics.tls=true: the token would be readable" -}}
{{- end -}}
{{- include "quorate.checkConfig" . -}}
{{- end -}}

{{/* Settings under config that the chart makes itself, or that something else here has to fit. */}}
{{- define "quorate.checkConfig" -}}
{{- $own := dict
  "node.id" "it is the pod's number"
  "node.data_dir" "the volume is mounted at /var/lib/quorate, and a node that writes elsewhere loses its data"
  "listeners.client" "it is 0.0.0.0:9190"
  "listeners.advertised_client" "it is the pod's name"
  "metrics.listen" "it is 0.0.0.0:9191, which probes and Prometheus ask"
  "metrics.tls" "set metrics.tls beside config"
  "metrics.token_file" "set metrics.tokenSecret"
  "security.mode" "set security.mode beside config"
  "security.unsafe_insecure_listeners" "set security.unsafeInsecureListeners"
  "security.operators" "set security.operators beside config"
  "tls.ca_file" "it is ca.pem of tls.secretName"
  "tls.cert_file" "it is voter-N.pem of tls.secretName"
  "tls.key_file" "it is voter-N.key of tls.secretName"
  "tls.require_client_cert" "it is true with tls.secretName"
  "tls.node_name" "set tls.nodeName"
-}}
{{- range $section, $keys := .Values.config -}}
{{- range $key, $value := $keys -}}
{{- with get $own (printf "%s.%s" $section $key) -}}
{{- fail (printf "config.%s.%s cannot be set here: %s" $section $key .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $taken := list "9190" "9191" -}}
{{- $listeners := default dict .Values.config.listeners -}}
{{- range $name := list "sasl" "peer" "peer_tcp" -}}
{{- with get $listeners $name -}}
{{- if not (regexMatch "^(0\\.0\\.0\\.0|\\[::\\]):[1-9][0-9]{0,4}$" (toString .)) -}}
{{- fail (printf "config.listeners.%s: write 0.0.0.0:PORT, so that other pods reach it, not %v" $name .) -}}
{{- end -}}
{{- $port := include "quorate.port" (dict "root" $ "name" $name) -}}
{{- if or (has $port $taken) (gt (int $port) 65535) -}}
{{- fail (printf "config.listeners.%s: port %s is taken by another listener, or is none" $name $port) -}}
{{- end -}}
{{- $taken = append $taken $port -}}
{{- end -}}
{{- end -}}
{{- if and (get $listeners "sasl") (ne .Values.security.mode "bound") -}}
{{- fail "config.listeners.sasl needs security.mode=bound: only it knows users" -}}
{{- end -}}
{{- with get (default dict .Values.config.limits) "shutdown_ms_max" -}}
{{- /* The command before the stop has ten seconds and a start; then transfer and disk work follow. */ -}}
{{- $least := add 20 (div (mul 2 (int64 .)) 1000) -}}
{{- if lt (int64 $.Values.terminationGracePeriodSeconds) $least -}}
{{- fail (printf "terminationGracePeriodSeconds must be %d at least with config.limits.shutdown_ms_max=%d: Kubernetes kills a node that is not done then" $least (int64 .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
