{{- define "muniment.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* What the certificate must name. */}}
{{- define "muniment.host" -}}
{{ include "muniment.name" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "muniment.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* (list $ component) */}}
{{- define "muniment.selector" -}}
app.kubernetes.io/name: muniment
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "muniment.labels" -}}
{{ include "muniment.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{- define "muniment.podMetadata" -}}
labels:
  {{- with (index . 0).Values.pods.labels }}{{ toYaml . | nindent 2 }}{{ end }}
  {{- include "muniment.labels" . | nindent 2 }}
{{- with (index . 0).Values.pods.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all pods have: no rights, and no token of the cluster. */}}
{{- define "muniment.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .Values.pods }}
{{- with .serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "muniment.container" -}}
image: {{ include "muniment.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Passwords and tokens in files of the server's own, because it refuses those that a group can read. */}}
{{- define "muniment.copySecrets" -}}
- name: secrets
  {{- include "muniment.container" . | nindent 2 }}
  command: [sh, -euc, "umask 077; cp -L /run/secrets/* /var/lib/muniment/passwords"]
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  volumeMounts:
    - {name: secrets, mountPath: /run/secrets, readOnly: true}
    - {name: passwords, mountPath: /var/lib/muniment/passwords}
{{- end }}

{{/* A list of the names of secrets, empty ones left out. */}}
{{- define "muniment.secretVolumes" -}}
- name: secrets
  projected:
    sources:
      {{- range compact . }}
      - secret: {name: {{ . | quote }}}
      {{- end }}
- name: passwords
  emptyDir: {medium: Memory, sizeLimit: 4Mi}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 256Mi}
{{- end }}

{{/* (list secret) */}}
{{- define "muniment.databaseUrl" -}}
- name: MUNIMENT_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ index . 0 | quote }}, key: url}
- name: MUNIMENT_PASSFILE
  value: /var/lib/muniment/passwords/passfile
{{- end }}

{{/* A NetworkPolicy's peers, from namespaces and labels of pods. */}}
{{- define "muniment.peers" -}}
{{- range . }}
- namespaceSelector:
    matchLabels: {kubernetes.io/metadata.name: {{ .namespace | quote }}}
  {{- with .podLabels }}
  podSelector:
    matchLabels: {{- toYaml . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "muniment.egressToDatabase" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
- ports:
    - {port: {{ .port }}, protocol: TCP}
  {{- with .peers }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
