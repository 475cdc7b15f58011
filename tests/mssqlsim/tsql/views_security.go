package tsql

import (
	"slices"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// securityViews are the views of principals, permissions, endpoints, certificates and keys.
func securityViews() []viewMaker {
	type (
		prin = engine.PrincipalRow
		perm = engine.PermissionRow
		mem  = engine.RoleMemberRow
		ep   = engine.EndpointRow
		cert = engine.CertificateRow
		key  = engine.SymmetricKeyRow
		cred = engine.Credential
	)
	char1 := sqltypes.Type{ID: sqltypes.Char, Len: 1}
	char4 := sqltypes.Type{ID: sqltypes.Char, Len: 4}
	char2 := sqltypes.Type{ID: sqltypes.Char, Len: 2}
	principal := func() []col[prin] {
		return []col[prin]{
			sysname("name", func(r *prin) string { return r.Name }),
			integer("principal_id", func(r *prin) int { return int(r.ID) }),
			bin("sid", 85, func(r *prin) []byte { return r.SID }),
			{name: "type", typ: char1, get: func(r *prin) value { return sqltypes.NewText(char1, r.Type) }},
			desc("type_desc", func(r *prin) string { return r.TypeDesc }),
			bit("is_disabled", func(r *prin) bool { return r.IsDisabled }),
			datetime("create_date", func(r *prin) time.Time { return r.CreateDate }),
			datetime("modify_date", func(r *prin) time.Time { return r.ModifyDate }),
			nv("default_database_name", 128, func(r *prin) string { return r.DefaultDatabase }),
			nv("default_language_name", 128, func(r *prin) string {
				if r.Type == "S" || r.Type == "C" {
					return "us_english"
				}
				return ""
			}),
			nullCol[prin]("credential_id", sqltypes.TInt),
		}
	}
	owner := optInt("owning_principal_id", func(r *prin) engine.Opt[int] { return engine.Opt[int]{V: int(r.OwnerID), OK: r.OwnerID != 0} })
	fixedRole := bit("is_fixed_role", func(r *prin) bool { return r.IsFixedRole })
	permission := []col[perm]{
		tiny("class", func(r *perm) uint8 { return r.Class }),
		desc("class_desc", func(r *perm) string { return r.ClassDesc }),
		integer("major_id", func(r *perm) int { return r.MajorID }),
		fixed[perm]("minor_id", sqltypes.NewInt(0)),
		integer("grantee_principal_id", func(r *perm) int { return int(r.GranteeID) }),
		integer("grantor_principal_id", func(r *perm) int { return int(r.GrantorID) }),
		{name: "type", typ: char4, get: func(r *perm) value { return sqltypes.NewText(char4, (r.Type + "    ")[:4]) }},
		nv("permission_name", 128, func(r *perm) string { return r.Name }),
		{name: "state", typ: char1, get: func(r *perm) value { return sqltypes.NewText(char1, r.State) }},
		desc("state_desc", func(r *perm) string { return r.StateDesc }),
	}
	members := func(schema, name, role string, fetch func(ex *exec, db engine.DatabaseID) ([]mem, error)) viewMaker {
		return view(schema, name, fetch,
			integer("role_principal_id", func(r *mem) int { return int(r.RoleID) }),
			integer("member_principal_id", func(r *mem) int { return int(r.MemberID) }))
	}
	endpoint := func() []col[ep] {
		return []col[ep]{
			sysname("name", func(r *ep) string { return r.Name }),
			integer("endpoint_id", func(r *ep) int { return r.ID }),
			integer("principal_id", func(r *ep) int { return int(r.PrincipalID) }),
			tiny("protocol", func(r *ep) uint8 { return r.Protocol }),
			desc("protocol_desc", func(r *ep) string { return r.ProtocolDesc }),
			tiny("type", func(r *ep) uint8 { return r.Type }),
			desc("type_desc", func(r *ep) string { return r.TypeDesc }),
			tiny("state", func(r *ep) uint8 { return r.State }),
			desc("state_desc", func(r *ep) string { return r.StateDesc }),
			bit("is_admin_endpoint", func(r *ep) bool { return r.IsAdmin }),
		}
	}
	endpoints := func(keep func(r *ep) bool) func(ex *exec, _ engine.DatabaseID) ([]ep, error) {
		return func(ex *exec, _ engine.DatabaseID) ([]ep, error) {
			return slices.DeleteFunc(slices.Clone(ex.in.Endpoints(ex.hst, ex.s.id)), func(r ep) bool { return !keep(&r) }), nil
		}
	}
	return []viewMaker{
		view("sys", "server_principals", func(ex *exec, _ engine.DatabaseID) ([]prin, error) {
			return ex.in.ServerPrincipals(ex.hst, ex.s.id), nil
		}, append(principal(), owner, fixedRole)...),
		view("sys", "sql_logins", func(ex *exec, _ engine.DatabaseID) ([]prin, error) {
			return slices.DeleteFunc(slices.Clone(ex.in.ServerPrincipals(ex.hst, ex.s.id)), func(r prin) bool { return r.Type != "S" }), nil
		}, append(principal(),
			bit("is_policy_checked", func(r *prin) bool { return r.PolicyChecked }),
			fixed[prin]("is_expiration_checked", sqltypes.NewBit(false)),
			nullCol[prin]("password_hash", sqltypes.TVarBinary(256)),
		)...),
		view("sys", "server_permissions", func(ex *exec, _ engine.DatabaseID) ([]perm, error) {
			return ex.in.ServerPermissions(ex.hst, ex.s.id), nil
		}, permission...),
		members("sys", "server_role_members", "", func(ex *exec, _ engine.DatabaseID) ([]mem, error) {
			return ex.in.ServerRoleMembers(ex.hst, ex.s.id), nil
		}),
		view("sys", "database_principals", func(ex *exec, db engine.DatabaseID) ([]prin, error) {
			return ex.in.DatabasePrincipals(ex.hst, ex.s.id, db), nil
		},
			sysname("name", func(r *prin) string { return r.Name }),
			integer("principal_id", func(r *prin) int { return int(r.ID) }),
			col[prin]{name: "type", typ: char1, get: func(r *prin) value { return sqltypes.NewText(char1, r.Type) }},
			desc("type_desc", func(r *prin) string { return r.TypeDesc }),
			nv("default_schema_name", 128, func(r *prin) string { return r.DefaultSchema }),
			datetime("create_date", func(r *prin) time.Time { return r.CreateDate }),
			datetime("modify_date", func(r *prin) time.Time { return r.ModifyDate }),
			owner,
			bin("sid", 85, func(r *prin) []byte { return r.SID }),
			fixedRole,
			fixed[prin]("authentication_type", sqltypes.NewInt(1)),
			fixed[prin]("authentication_type_desc", sqltypes.NewText(sqltypes.TNVarChar(60), "INSTANCE")),
			nullCol[prin]("default_language_name", sqltypes.TNVarChar(128)),
			nullCol[prin]("default_language_lcid", sqltypes.TInt),
		),
		view("sys", "database_permissions", func(ex *exec, db engine.DatabaseID) ([]perm, error) {
			return ex.in.DatabasePermissions(ex.hst, ex.s.id, db), nil
		}, permission...),
		members("sys", "database_role_members", "", func(ex *exec, db engine.DatabaseID) ([]mem, error) {
			return ex.in.DatabaseRoleMembers(ex.hst, ex.s.id, db), nil
		}),
		ofCatalog(view("sys", "endpoints", endpoints(func(*ep) bool { return true }), endpoint()...)),
		ofCatalog(view("sys", "tcp_endpoints", endpoints(func(r *ep) bool { return r.Protocol == 2 }), append(endpoint(),
			integer("port", func(r *ep) int { return r.Port }),
			fixed[ep]("is_dynamic_port", sqltypes.NewBit(false)),
			nv("ip_address", 45, func(r *ep) string { return r.IPAddress }),
		)...)),
		ofCatalog(view("sys", "database_mirroring_endpoints", endpoints(func(r *ep) bool { return r.Type == 4 }), append(endpoint(),
			tiny("role", func(r *ep) uint8 { return r.Role }),
			desc("role_desc", func(r *ep) string { return r.RoleDesc }),
			bit("is_encryption_enabled", func(r *ep) bool { return r.IsEncryptionEnabled }),
			tiny("connection_auth", func(r *ep) uint8 { return r.ConnectionAuth }),
			desc("connection_auth_desc", func(r *ep) string { return r.ConnectionAuthDesc }),
			integer("certificate_id", func(r *ep) int { return r.CertificateID }),
			tiny("encryption_algorithm", func(r *ep) uint8 { return r.EncryptionAlgorithm }),
			desc("encryption_algorithm_desc", func(r *ep) string { return r.EncryptionAlgorithmDesc }),
		)...)),
		ofCatalog(view("sys", "certificates", func(ex *exec, db engine.DatabaseID) ([]cert, error) {
			if db != engine.MasterID {
				return nil, nil
			}
			return ex.in.Certificates(ex.hst, ex.s.id), nil
		},
			sysname("name", func(r *cert) string { return r.Name }),
			integer("certificate_id", func(r *cert) int { return r.ID }),
			integer("principal_id", func(r *cert) int { return int(r.PrincipalID) }),
			col[cert]{name: "pvt_key_encryption_type", typ: char2, get: func(r *cert) value { return sqltypes.NewText(char2, r.PrivateKeyType) }},
			desc("pvt_key_encryption_type_desc", func(r *cert) string { return r.PrivateKeyTypeDesc }),
			bit("is_active_for_begin_dialog", func(r *cert) bool { return r.IsActiveForDialog }),
			nv("issuer_name", 442, func(r *cert) string { return r.Issuer }),
			nv("cert_serial_number", 64, func(r *cert) string { return r.Serial }),
			bin("sid", 85, func(r *cert) []byte { return r.SID }),
			nv("string_sid", 128, func(r *cert) string { return r.StringSID }),
			nv("subject", 4000, func(r *cert) string { return r.Subject }),
			datetime("expiry_date", func(r *cert) time.Time { return r.Expiry }),
			datetime("start_date", func(r *cert) time.Time { return r.StartDate }),
			bin("thumbprint", 32, func(r *cert) []byte { return r.Thumbprint }),
			nullCol[cert]("attested_by", sqltypes.TNVarChar(260)),
			optTime("pvt_key_last_backup_date", func(r *cert) engine.Opt[time.Time] { return r.LastKeyBackup }),
			integer("key_length", func(r *cert) int { return r.KeyLength }),
		)),
		view("sys", "credentials", func(ex *exec, _ engine.DatabaseID) ([]cred, error) { return ex.in.Credentials(ex.hst, ex.s.id), nil },
			integer("credential_id", func(r *cred) int { return r.ID }),
			sysname("name", func(r *cred) string { return r.Name }),
			nv("credential_identity", 4000, func(r *cred) string { return r.Identity }),
			datetime("create_date", func(r *cred) time.Time { return r.Created }),
			datetime("modify_date", func(r *cred) time.Time { return r.Modified }),
			nullCol[cred]("target_type", sqltypes.TNVarChar(100)),
			nullCol[cred]("target_id", sqltypes.TInt),
		),
		view("sys", "symmetric_keys", func(ex *exec, db engine.DatabaseID) ([]key, error) {
			if db != engine.MasterID {
				return nil, nil
			}
			return ex.in.SymmetricKeys(ex.hst, ex.s.id), nil
		},
			sysname("name", func(r *key) string { return r.Name }),
			integer("principal_id", func(r *key) int { return int(r.PrincipalID) }),
			integer("symmetric_key_id", func(r *key) int { return r.ID }),
			integer("key_length", func(r *key) int { return r.KeyLength }),
			col[key]{name: "key_algorithm", typ: char2, get: func(r *key) value { return sqltypes.NewText(char2, r.Algorithm) }},
			desc("algorithm_desc", func(r *key) string { return r.AlgoDesc }),
			datetime("create_date", func(r *key) time.Time { return r.CreateDate }),
			datetime("modify_date", func(r *key) time.Time { return r.ModifyDate }),
			guid("key_guid", func(r *key) engine.GUID { return r.GUID }),
		),
	}
}

// backupViews are the tables of msdb that hold the backup history (FG 9.2).
func backupViews() []viewMaker {
	type set = engine.BackupSetRow
	char1 := sqltypes.Type{ID: sqltypes.Char, Len: 1}
	fetch := func(ex *exec, _ engine.DatabaseID) ([]set, error) { return ex.in.BackupSets(ex.hst, ex.s.id), nil }
	inMSDB := func(m viewMaker) viewMaker {
		return func(major int) *sysView {
			v := m(major)
			v.home = engine.MSDBID
			return v
		}
	}
	numeric20 := func(name string, f func(r *set) int64) col[set] {
		t := sqltypes.TNumeric(20, 0)
		return col[set]{name: name, typ: t, null: true, get: func(r *set) value {
			v, err := sqltypes.Cast(sqltypes.NewBigInt(f(r)), t, 0)
			if err != nil {
				return sqltypes.Null(t)
			}
			return v
		}}
	}
	return []viewMaker{
		inMSDB(view("dbo", "backupset", fetch,
			integer("backup_set_id", func(r *set) int { return r.ID }),
			nullCol[set]("backup_set_uuid", sqltypes.TGUID),
			integer("media_set_id", func(r *set) int { return r.ID }),
			fixed[set]("first_family_number", sqltypes.NewTinyInt(1)),
			fixed[set]("last_family_number", sqltypes.NewTinyInt(1)),
			nullCol[set]("expiration_date", sqltypes.TDateTime),
			nv("name", 128, func(r *set) string { return r.Name }),
			nullCol[set]("description", sqltypes.TNVarChar(255)),
			nv("user_name", 128, func(r *set) string { return r.UserName }),
			lsn("first_lsn", func(r *set) engine.LSN { return r.FirstLSN }),
			lsn("last_lsn", func(r *set) engine.LSN { return r.LastLSN }),
			lsn("checkpoint_lsn", func(r *set) engine.LSN { return r.CheckpointLSN }),
			lsn("database_backup_lsn", func(r *set) engine.LSN { return r.DatabaseBackupLSN }),
			datetime("backup_start_date", func(r *set) time.Time { return r.Start }),
			datetime("backup_finish_date", func(r *set) time.Time { return r.Finish }),
			col[set]{name: "type", typ: char1, null: true, get: func(r *set) value { return sqltypes.NewText(char1, r.Type) }},
			numeric20("backup_size", func(r *set) int64 { return r.Bytes }),
			nv("database_name", 128, func(r *set) string { return r.Database }),
			nv("server_name", 128, func(r *set) string { return r.ServerName }),
			nv("machine_name", 128, func(r *set) string { return r.ServerName }),
			fixed[set]("has_backup_checksums", sqltypes.NewBit(false)),
			fixed[set]("is_damaged", sqltypes.NewBit(false)),
			nv("recovery_model", 60, func(r *set) string { return r.RecoveryModel }),
			guid("first_recovery_fork_guid", func(r *set) engine.GUID { return r.FirstForkGUID }),
			guid("family_guid", func(r *set) engine.GUID { return r.FamilyGUID }),
			bit("is_copy_only", func(r *set) bool { return r.IsCopyOnly }),
			numeric20("compressed_backup_size", func(r *set) int64 { return r.CompressedBytes }),
		)),
		inMSDB(view("dbo", "backupmediafamily", fetch,
			integer("media_set_id", func(r *set) int { return r.ID }),
			fixed[set]("family_sequence_number", sqltypes.NewTinyInt(1)),
			nullCol[set]("media_family_id", sqltypes.TGUID),
			fixed[set]("media_count", sqltypes.NewInt(1)),
			nullCol[set]("logical_device_name", sqltypes.TNVarChar(128)),
			nv("physical_device_name", 260, func(r *set) string { return r.PhysicalDevice }),
			tiny("device_type", func(r *set) uint8 { return uint8(r.DeviceType) }),
			fixed[set]("mirror", sqltypes.NewTinyInt(0)),
		)),
	}
}
