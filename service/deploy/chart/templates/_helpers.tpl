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

{{- define "muniment.spread" -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "muniment.selector" $ | nindent 6 }}
{{- end }}
{{- end }}

{{/* A pod that cannot become ready, as without a database, must not hold up the drain of a node. */}}
{{- define "muniment.disruptions" -}}
maxUnavailable: 1
unhealthyPodEvictionPolicy: AlwaysAllow
selector:
  matchLabels: {{- include "muniment.selector" . | nindent 4 }}
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
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
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

{{/* Until other nodes send no more connections here. */}}
{{- define "muniment.lifecycle" -}}
preStop:
  exec: {command: [sleep, "5"]}
{{- end }}

{{/* (list $ resources): passwords and tokens in files of the server's own, because it refuses those that a group can
     read. The resources are those of the container that follows. */}}
{{- define "muniment.copySecrets" -}}
- name: secrets
  {{- include "muniment.container" (index . 0) | nindent 2 }}
  command: [sh, -euc, "umask 077; cp -L /run/secrets/* /var/lib/muniment/passwords"]
  resources: {{- toYaml (index . 1) | nindent 4 }}
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

{{/* (list $ name): a pod that may change the database. What its container runs is to follow. */}}
{{- define "muniment.operator" -}}
{{- $name := index . 1 }}
{{- with index . 0 }}
{{- include "muniment.pod" . }}
restartPolicy: Never
initContainers: {{- include "muniment.copySecrets" (list . .Values.migration.resources) | nindent 2 }}
volumes: {{- include "muniment.secretVolumes" (list .Values.database.secret) | nindent 2 }}
containers:
  - name: {{ $name }}
    {{- include "muniment.container" . | nindent 4 }}
    env:
      {{- include "muniment.databaseUrl" (list .Values.migration.secret) | nindent 6 }}
      {{- range $variable, $value := .Values.server.env }}
      - {name: {{ $variable }}, value: {{ $value | quote }}}
      {{- end }}
    resources: {{- toYaml .Values.migration.resources | nindent 6 }}
    # Not to be written: a password that the secret lacks would be lost with this pod.
    volumeMounts:
      - {name: passwords, mountPath: /var/lib/muniment/passwords, readOnly: true}
      - {name: tmp, mountPath: /tmp}
{{- end }}
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
