package manifests

// Permission is one rule of the operator with the reason why it is needed.
type Permission struct {
	Why       string
	Groups    []string
	Resources []string
	Verbs     []string
}

// PermissionSet is where a set of rules is granted.
type PermissionSet struct {
	Where string
	Rules []Permission
}

// Permissions lists what the operator may do, for the documentation.
func Permissions() []PermissionSet {
	return []PermissionSet{
		{"In every watched namespace", exported(namespacedRules())},
		{"In the cluster", exported(clusterRules())},
		{"In its own namespace", exported(ownRules())},
	}
}

func exported(rules []rule) []Permission {
	out := make([]Permission, 0, len(rules))
	for _, r := range rules {
		out = append(out, Permission{Why: r.why, Groups: r.groups, Resources: r.resources, Verbs: r.verbs})
	}
	return out
}
