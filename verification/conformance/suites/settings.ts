/**
 * A view of a Redis source tree whose test client does what the proxy's refusal of CONFIG SET asks for: it connects
 * directly to the server that answers, and sets the parameter there. All else goes through the proxy, and the tree
 * itself is not changed.
 */
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The variable of the environment that gives the tests the port of the server that answers. */
export const AUTHORITY_PORT = 'CONFORMANCE_AUTHORITY_PORT';

/** Tcl: a method of its own goes before the command of the server; the command's name in other letters is no method. */
const HOOK = `
proc ::redis::__method__config {id fd args} {
    if {$::redis::deferred($id) && [string equal -nocase [lindex $args 0] set]} {
        # Its reply is read later: another client sets it, and this one asks for that reply.
        set other [redis [lindex $::redis::addr($id) 0] [lindex $::redis::addr($id) 1]]
        set reply [$other config {*}$args]
        $other close
        return [::redis::__dispatch__raw__ $id echo [list $reply]]
    }
    if {![catch {::redis::__dispatch__raw__ $id Config $args} reply]} { return $reply }
    if {![string match {ERR shadow-proxy: CONFIG SET * is not supported: *} $reply]} { return -code error $reply }
    set direct [socket 127.0.0.1 $::env(${AUTHORITY_PORT})]
    fconfigure $direct -translation binary
    set command "*[expr {[llength $args]+1}]\\r\\n\\$6\\r\\nCONFIG\\r\\n"
    foreach argument $args { append command "\\$[string length $argument]\\r\\n$argument\\r\\n" }
    puts -nonewline $direct $command
    flush $direct
    set line [string trimright [gets $direct] "\\r"]
    close $direct
    if {[string index $line 0] eq {-}} { return -code error [string range $line 1 end] }
    return [string range $line 1 end]
}
proc ::redis::__method__CONFIG {id fd args} { return [uplevel 1 [list ::redis::__method__config $id $fd] $args] }
`;

/** Makes the view in `folder`, from the start. */
export function viewOf(source: string, folder: string): string {
  rmSync(folder, { recursive: true, force: true });
  const support = join('tests', 'support');
  mkdirSync(join(folder, support), { recursive: true });
  mkdirSync(join(folder, 'tests', 'tmp'));
  const link = (below: string, ...without: string[]): void => {
    const names = readdirSync(join(source, below)).filter((name) => !without.includes(name));
    for (const name of names) symlinkSync(join(source, below, name), join(folder, below, name));
  };
  link('.', 'tests');
  link('tests', 'support', 'tmp');
  link(support, 'redis.tcl');
  writeFileSync(join(folder, support, 'redis.tcl'), `source ${join(source, support, 'redis.tcl')}\n${HOOK}`);
  return folder;
}
