{{- /* The operator's image: repository, tag and digest. */ -}}
{{- define "kubectl-mssql.image" -}}
{{- $image := .Values.image -}}
{{ $image.repository }}{{ if or $image.tag (not $image.digest) }}:{{ default .Chart.AppVersion $image.tag }}{{ end }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{- /* End of the names of cluster-wide objects: installations in other namespaces than the usual one do not overwrite each other. */ -}}
{{- define "kubectl-mssql.suffix" -}}
{{ if ne .Release.Namespace "[[ .Namespace ]]" }}-{{ .Release.Namespace }}{{ end }}
{{- end -}}

{{- define "kubectl-mssql.chart" -}}
{{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}
