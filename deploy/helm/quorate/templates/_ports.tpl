{{/* The port of a listener that is set under config.listeners; empty without it. */}}
{{- define "quorate.port" -}}
{{- with get (default dict .root.Values.config.listeners) .name -}}
{{- regexFind "[0-9]+$" (toString .) -}}
{{- end -}}
{{- end -}}

{{/* Where nodes reach each other. */}}
{{- define "quorate.peerPort" -}}
{{- default "9190" (include "quorate.port" (dict "root" . "name" "peer")) -}}
{{- end -}}
