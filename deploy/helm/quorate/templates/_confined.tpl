{{/* What every container of ours has: no rights, its resources, its volumes. */}}
{{- define "quorate.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources: {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - {name: data, mountPath: /var/lib/quorate}
  - {name: tmp, mountPath: /tmp}
  {{- if .Values.tls.secretName }}
  - {name: tls, mountPath: /etc/quorate/tls, readOnly: true}
  {{- end }}
  {{- if .Values.metrics.tokenSecret.name }}
  - {name: metrics, mountPath: /etc/quorate/metrics, readOnly: true}
  {{- end }}
{{- end -}}
