/**
 * Files of tests that the default run leaves out, for they take many seconds of CPU. `npm test -- --slow` and CI run them.
 * Each group says what the default run has of their subject.
 */
const below = (folder, ...names) => names.map((name) => `${folder}/${name}.test.ts`);
const PROXY = 'shadow-proxy/test/integration';

export const SLOW = new Set([
  // Orders of events in real time, and the driver of random commands. Simulated runs have more orders, and repeat each.
  ...below(`${PROXY}/rules`, 'rule-03-flip', 'rule-03-waiting', 'rule-06-blocking', 'rule-06-queue', 'turns', 'lanes'),
  ...below(`${PROXY}/rules`, 'rule-08-expiry', 'rule-08-edge', 'queue', 'lives-property', 'databases-property'),
  ...below(PROXY, 'rules/transaction-databases', 'copy/swapdb', 'copy/many-suspects', 'faults/busy', 'faults/silent'),
  // Restarts, lost connections, clocks, damaged journals and subscribers: profiles crashes, expiry-restarts, losses, clocks,
  // damages and flips have them. rules/rule-25-restart, protocol/pubsub-order and storage/journal use real servers.
  ...below(`${PROXY}/rules`, 'rule-05-zombies', 'rule-08-restart', 'rule-23-unreadable', 'clocks', 'pubsub'),
  ...below(PROXY, 'random/trial', 'random/driver', 'pipeline/held-links', 'stages/dry-run', 'storage/journal-contents'),
  ...below(PROXY, 'faults/crashes'),
  // Commands of operators with processes of the proxy. cli/daemon, cli/run and cli/waiting start both programs, too;
  // unit/cli/fleet has several processes' worth of shards, otel/otel what is sent.
  ...below(`${PROXY}/cli`, 'advice', 'assess-cluster', 'fleet', 'hostile', 'jobs', 'plan-init', 'printing', 'promote'),
  ...below(`${PROXY}/cli`, 'completion', 'opentelemetry', 'restart-ttl', 'runbook', 'standby'),
  // Every command of the runbooks, in a fleet. unit/runbook/pages reads each; cli/ask has the questions to servers.
  ...below(PROXY, 'runbook/commands'),
  // Every command, and large values of many clients. protocol/wire and protocol/client have some of each.
  ...below(`${PROXY}/protocol`, 'everything', 'sockets', 'client-limits', 'fairness'),
  // Shards that share a target, and users with few rights. cluster/face, copy/foreign and rules/privileges have some.
  ...below(PROXY, 'copy/shared-target', 'protocol/shared-target', 'protocol/less-power', 'random/acl/property'),
  // Large keys and cluster shapes. copy/backfill, copy/large-repair and cluster/face have smaller ones; protocol/tls has TLS.
  ...below(PROXY, 'copy/large-elements', 'copy/large-events', 'copy/large-sequences', 'copy/large-verify'),
  ...below(PROXY, 'cluster/refinement', 'cluster/tls'),
  // Takeovers of proxies that clients find by Sentinels. sentinel/conformance has each command, unit/sentinel the events.
  ...below(PROXY, 'sentinel/takeover'),
  // Names of lanes at the servers, each 5 s. unit/lease has how the next process finds such connections.
  ...below(PROXY, 'protocol/lane-names'),
  // Each state of the status page. page/status-page has the page of a shard that runs.
  ...below(PROXY, 'page/scenes'),
  // Servers that are brought with each package manager. Machines that have servers need none of it.
  ...below(PROXY, 'local/bring'),
  // Simulated runs with a second seed. verification/simulation/test/run/run has the first, of each profile.
  ...below('verification/simulation/test/run', 'second-seed'),
  // Programs beside the proxy: load test, and faults under simulated runs. Their parts have tests of their own.
  ...below('loadtest/test', 'hostile', 'run'),
  ...below('verification/mutants/test', 'simulated'),
]);
