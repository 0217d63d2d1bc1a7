{{/* What is a value is written as JSON, which YAML reads as it was given, whatever it holds. */}}

{{/* The name that kustomize gives the ConfigMap. It ends in a hash of the file, so a changed file starts new pods. */}}
{{- define "quorate.configName" -}}
{{- $data := dict "quorate.yaml" .Values.configuration -}}
{{- $all := dict "kind" "ConfigMap" "name" "" "data" $data -}}
{{- $hash := $all | mustToJson | sha256sum | trunc 10 -}}
quorate-config-{{ $hash | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t" }}
{{- end }}

{{/* The arguments of the container, of which those of the mode are given. */}}
{{- define "quorate.args" -}}
- run
- --config=/etc/quorate/quorate.yaml
{{- if eq .Values.mode "loop" }}
- --loop
- --listen=:8080
{{- else }}
- --until-converged
- --timeout=4m
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
resources:
  requests: {cpu: 50m, memory: 64Mi}
  limits: {memory: 256Mi}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
- {name: tmp, mountPath: /tmp}
- {name: config, mountPath: /etc/quorate/quorate.yaml, subPath: quorate.yaml, readOnly: true}
{{- if .Values.private }}
- {name: git, mountPath: /etc/quorate/git, readOnly: true}
{{- end }}
{{- end }}

{{- define "quorate.volumes" -}}
volumes:
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
- name: config
  configMap: {name: {{ include "quorate.configName" . }}}
{{- if .Values.private }}
- name: git
  secret: {secretName: quorate-git, defaultMode: 0o440}
{{- end }}
{{- end }}
