{{/* What is a value is written as JSON, which YAML reads as it was given, whatever it holds. */}}

{{/* The name that kustomize gives the ConfigMap: its hash changes the pods whenever the source changes. */}}
{{- define "quorate.sourceName" -}}
{{- $data := dict "SOURCE" .Values.source "BRANCH" .Values.branch "DIRECTORY" .Values.path -}}
{{- $all := dict "kind" "ConfigMap" "name" "" "data" $data -}}
{{- $hash := $all | mustToJson | sha256sum | trunc 10 -}}
quorate-source-{{ $hash | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t" }}
{{- end }}

{{/* The arguments of the container, of which those of the mode are given. */}}
{{- define "quorate.args" -}}
- run
- --source=$(SOURCE)
{{- if ne .Values.source "cluster" }}
- --branch=$(BRANCH)
- --path=$(DIRECTORY)
{{- end }}
{{- if eq .Values.mode "loop" }}
- --loop
- --listen=:8080
{{- else }}
- --until-converged
- --timeout=4m
{{- end }}
- --log-format=json
{{- if .Values.private }}
- --git-credentials=/etc/quorate/git
{{- end }}
{{- range .Values.args }}
- {{ mustToJson . }}
{{- end }}
{{- end }}

{{/* What the pods of all modes have in common. */}}
{{- define "quorate.podSecurity" -}}
serviceAccountName: quorate
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  {{- if .Values.private }}
  fsGroup: 65532
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "quorate.container" -}}
name: quorate
image: {{ mustToJson .Values.image }}
imagePullPolicy: IfNotPresent
args:
{{ include "quorate.args" . }}
envFrom:
- configMapRef: {name: {{ include "quorate.sourceName" . }}}
resources:
  requests: {cpu: 50m, memory: 64Mi}
  limits: {memory: 256Mi}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
- {name: tmp, mountPath: /tmp}
{{- if .Values.private }}
- {name: git, mountPath: /etc/quorate/git, readOnly: true}
{{- end }}
{{- end }}

{{- define "quorate.volumes" -}}
volumes:
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
{{- if .Values.private }}
- name: git
  secret: {secretName: quorate-git, defaultMode: 0o440}
{{- end }}
{{- end }}
