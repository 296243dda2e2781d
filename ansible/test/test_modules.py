"""The modules against a real KeyDB: read before write, and what CONFIG REWRITE leaves behind."""

import re
import socket
import time

from conftest import module, render
from resp import Server

PASSWORD = "a\"b$c#d'e\\f`g é"


def settings(keydb, wanted):
    """Sets what differs. @returns whether something changed, names of what was set, names of what needs a restart"""
    done = module("keydb_settings", port=keydb.port, settings=wanted)
    assert not done["failed"], done
    return done["changed"], sorted(done["set"]), done["restart"]


def command(keydb, *commands):
    """Sends commands, none of which may be refused."""
    done = module("keydb_command", port=keydb.port, commands=[*commands])
    assert not done["failed"], done


def test_each_runs_as_ansible_sends_it(play, keydb):
    """The others run in this process: here each is packed with what it imports, and read as a result."""
    at = {"port": keydb.port}
    tasks = [
        {"keydb_info": at, "register": "info"},
        {"keydb_command": {**at, "commands": [["PING"]]}, "register": "command"},
        {"keydb_settings": {**at, "settings": {"masterauth": PASSWORD}}, "register": "set"},
        {"keydb_save": {**at, "timeout": 60}, "register": "saved"},
        {"keydb_cluster": {"nodes": [{"name": "one", "host": "127.0.0.1", **at, "slots": "0-16383"}]}, "register": "cluster", "ignore_errors": True},
        {"cluster_layout": {"nodes": [f"127.0.0.1:{keydb.port}"]}, "register": "layout", "ignore_errors": True},
        {"ansible.builtin.debug": {"msg": "RESULT {{ info.role }} {{ command.replies | join }} {{ set.changed }} {{ saved.changed }} {{ cluster.msg }} {{ layout.msg }} END"}},
    ]
    code, output = play(tasks)
    assert code == 0, output
    said = output.partition("RESULT ")[2].partition(" END")[0]
    assert said.startswith("primary PONG True False "), said
    assert "runs without cluster mode" in said and "no node says which slots it has" in said, said


def test_only_what_differs_is_set(keydb):
    wanted = {"maxmemory": "200mb", "maxmemory-policy": "allkeys-lru", "client-output-buffer-limit": "normal 256mb 64mb 60", "save": "900 1 300 10"}
    assert settings(keydb, wanted) == (True, sorted(wanted), [])
    assert settings(keydb, {**wanted, "maxmemory": "209715200"}) == (False, [], [])


def test_what_needs_a_restart_is_named(keydb):
    assert settings(keydb, {"server-threads": "2", "databases": "32"}) == (False, [], ["server-threads", "databases"])


def test_settings_of_the_files_win_over_what_config_rewrite_left(keydb):
    command(keydb, ["CONFIG", "SET", "maxmemory", "50mb"], ["CONFIG", "REWRITE"])
    assert "maxmemory 50mb" in keydb.live.read_text()
    keydb.restart()
    assert not settings(keydb, {"maxmemory": "100mb"})[0]


def test_a_role_that_a_failover_gave_survives_restart(keydb):
    command(keydb, ["REPLICAOF", "127.0.0.1", "1"], ["CONFIG", "REWRITE"])
    keydb.restart()
    seen = module("keydb_info", port=keydb.port)
    assert (seen["role"], seen["synced"]) == ("replica", False)


def test_a_server_that_is_away_is_an_answer_where_asked():
    seen = module("keydb_info", port=1, optional=True)
    assert (seen["failed"], seen["reachable"]) == (False, False)
    assert module("keydb_info", port=1)["failed"]


def test_a_command_that_is_refused_is_named(keydb):
    done = module("keydb_command", port=keydb.port, commands=[["PING"], ["NOSUCH", "thing"]])
    assert done["failed"] and "NOSUCH thing was refused" in done["msg"]


def test_what_config_refuses_to_tell_is_left_out(keydb):
    """As with a managed service, which has no CONFIG: INFO tells its limits all the same."""
    command(keydb, ["ACL", "SETUSER", "reader", "on", ">secret", "+@all", "-config", "~*"])
    seen = module("keydb_info", port=keydb.port, user="reader", password="secret", settings=["notify-keyspace-events"])
    assert (seen["info"]["maxmemory"], seen["settings"]) == ("104857600", {})


def test_a_password_of_any_characters_reaches_keydb_through_its_settings(keydb):
    file = keydb.live.parent / "settings.conf"
    file.write_text(render("keydb", "settings.conf.j2", keydb_settings={"masterauth": PASSWORD}, keydb_buffer_limits={}, keydb_save=[]))
    keydb.restart()
    assert settings(keydb, {"masterauth": PASSWORD}) == (False, [], [])


def test_a_keydb_that_lost_count_of_its_keys_is_found_out_by_a_snapshot(keydb):
    """`INFO` says that all is well: KeyDB calls a snapshot whose process has died cancelled."""
    done = module("keydb_save", port=keydb.port, timeout=60)
    assert (done["failed"], done["changed"]) == (False, False), done
    with Server("127.0.0.1", keydb.port) as writer, socket.create_connection(("127.0.0.1", keydb.port)) as walker:

        def counted():
            return int(re.search(r"expires=(\d+)", writer.call("INFO", "keyspace"))[1])

        writer.call("DEBUG", "POPULATE", 200_000)
        writer.call("SET", "session", "1", "EX", "3600")
        assert counted() == 1
        walker.sendall(b"KEYS *\r\n")
        deadline = time.monotonic() + 10
        while counted() == 1 and time.monotonic() < deadline:
            writer.call("SET", "session", "2", "EX", "3600")
        assert counted() > 1, "this KeyDB counts as it should: neither upstream/scan-page.ts nor the runbook is needed for it"
        done = module("keydb_save", port=keydb.port, timeout=60)
        assert done["failed"] and "has written no snapshot" in done["msg"] and "KeydbCannotSave" in done["msg"], done
        assert writer.info()["rdb_last_bgsave_status"] == "ok"
