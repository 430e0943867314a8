{{- define "parley.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "parley.settings" -}}
NODE_ENV: production
HOST: 0.0.0.0
ADMIN_HOST: 0.0.0.0
PORT: '8080'
ADMIN_PORT: '8081'
WORKER_PORT: '8082'
METRICS_PORT: '8083'
REQUEST_TIMEOUT_SECONDS: {{ .Values.requestTimeoutSeconds | quote }}
DRAIN_SECONDS: {{ .Values.grace.drainSeconds | quote }}
SHUTDOWN_GRACE_SECONDS: {{ .Values.grace.shutdownSeconds | quote }}
{{- with .Values.trustProxy }}
TRUST_PROXY: {{ . | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "parley.pod-security" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "parley.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
