// Runs the batches of a JSON request on one connection and prints what came as JSON.
// Usage: node query.js < request
const { Connection, Request, TYPES, ISOLATION_LEVEL } = require('tedious');

const input = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const connection = new Connection({
  server: input.host,
  authentication: { type: 'default', options: { userName: input.user, password: input.password } },
  options: {
    port: input.port, encrypt: input.encrypt, trustServerCertificate: true,
    database: input.database || 'master', connectTimeout: 20000, requestTimeout: 60000,
    rowCollectionOnRequestCompletion: false, useColumnNames: false, useUTC: true,
    readOnlyIntent: !!input.readOnly, packetSize: input.packetSize || 4096,
  },
});

const results = [];
let infos = [];
connection.on('infoMessage', (m) => infos.push({ number: m.number, class: m.class, text: m.message }));
connection.on('error', (e) => fail(e));

function fail(e) {
  process.stderr.write(String(e && e.stack || e) + '\n');
  process.exit(1);
}

function show(v) {
  if (Buffer.isBuffer(v)) return '0x' + v.toString('hex');
  if (v instanceof Date) return v.toISOString();
  if (typeof v === 'bigint') return String(v);
  return v;
}

function run(step) {
  return new Promise((resolve) => {
    const result = { columns: [], rows: [], errors: [], infos: [], outputs: {} };
    infos = result.infos;
    const request = new Request(step.sql || step.proc, (err, count) => {
      if (err) {
        for (const e of err.errors || [err]) result.errors.push({ number: e.number, class: e.class, state: e.state, text: e.message, code: e.code });
      }
      result.count = count;
      results.push(result);
      resolve();
    });
    request.on('columnMetadata', (columns) => { result.columns = columns.map((c) => ({ name: c.colName, type: c.type.name })); });
    request.on('row', (columns) => result.rows.push(columns.map((c) => show(c.value))));
    request.on('returnValue', (name, value) => { result.outputs[name] = show(value); });
    for (const p of step.params || []) {
      if (p.output) request.addOutputParameter(p.name, TYPES[p.type], p.value);
      else request.addParameter(p.name, TYPES[p.type], p.type.startsWith('Date') ? new Date(p.value) : p.value);
    }
    switch (step.how) {
      case 'batch': connection.execSqlBatch(request); break;
      case 'proc': connection.callProcedure(request); break;
      case 'prepared':
        request.on('prepared', () => {
          const values = {};
          for (const p of step.params || []) values[p.name] = p.value;
          connection.execute(request, values);
        });
        connection.prepare(request);
        break;
      case 'begin': connection.beginTransaction((err) => { results.push(result); if (err) fail(err); resolve(); }, '', ISOLATION_LEVEL.READ_COMMITTED); break;
      case 'commit': connection.commitTransaction((err) => { results.push(result); if (err) fail(err); resolve(); }); break;
      case 'rollback': connection.rollbackTransaction((err) => { results.push(result); if (err) fail(err); resolve(); }); break;
      case 'reset': connection.reset((err) => { results.push(result); if (err) fail(err); resolve(); }); break;
      case 'cancel':
        setTimeout(() => connection.cancel(), step.after || 300);
        connection.execSqlBatch(request);
        break;
      default: connection.execSql(request);
    }
  });
}

connection.connect(async (err) => {
  if (err) fail(err);
  for (const step of input.steps) await run(step);
  connection.on('end', () => { process.stdout.write(JSON.stringify(results)); });
  connection.close();
});
