"""The modules against a real KeyDB: read before write, and what CONFIG REWRITE leaves behind."""

import re
import socket
import time

from conftest import ROOT
from resp import Server


def settings(keydb, wanted):
    return [
        {"keydb_settings": {"port": keydb.port, "settings": wanted}, "register": "done"},
        {"ansible.builtin.debug": {"msg": "RESULT {{ done.changed }} set={{ done.set | sort | join('+') }} restart={{ done.restart | join('+') }} END"}},
    ]


def test_only_what_differs_is_set(play, keydb):
    wanted = {"maxmemory": "200mb", "maxmemory-policy": "allkeys-lru", "client-output-buffer-limit": "normal 256mb 64mb 60", "save": "900 1 300 10"}
    code, output = play(settings(keydb, wanted))
    assert code == 0 and "RESULT True set=client-output-buffer-limit+maxmemory+maxmemory-policy+save restart= END" in output, output
    code, output = play(settings(keydb, {**wanted, "maxmemory": "209715200"}))
    assert code == 0 and "RESULT False set= restart= END" in output, output


def test_what_needs_a_restart_is_named(play, keydb):
    code, output = play(settings(keydb, {"server-threads": "2", "databases": "32"}))
    assert code == 0 and "RESULT False set= restart=server-threads+databases END" in output, output


def test_settings_of_the_files_win_over_what_config_rewrite_left(play, keydb):
    code, output = play([{"keydb_command": {"port": keydb.port, "commands": [["CONFIG", "SET", "maxmemory", "50mb"], ["CONFIG", "REWRITE"]]}}])
    assert code == 0, output
    assert "maxmemory 50mb" in keydb.live.read_text()
    keydb.restart()
    code, output = play(settings(keydb, {"maxmemory": "100mb"}))
    assert code == 0 and "RESULT False" in output, output


def test_a_role_that_a_failover_gave_survives_restart(play, keydb):
    code, output = play([{"keydb_command": {"port": keydb.port, "commands": [["REPLICAOF", "127.0.0.1", "1"], ["CONFIG", "REWRITE"]]}}])
    assert code == 0, output
    keydb.restart()
    code, output = play(
        [
            {"keydb_info": {"port": keydb.port}, "register": "seen"},
            {"ansible.builtin.debug": {"msg": "RESULT {{ seen.role }} {{ seen.synced }} END"}},
        ]
    )
    assert code == 0 and "RESULT replica False END" in output, output


def test_a_server_that_is_away_is_an_answer_where_asked(play):
    code, output = play([{"keydb_info": {"port": 1, "optional": True}, "register": "seen"}, {"ansible.builtin.debug": {"msg": "RESULT {{ seen.reachable }} END"}}])
    assert code == 0 and "RESULT False END" in output
    assert play([{"keydb_info": {"port": 1}}])[0] != 0


def test_a_command_that_is_refused_is_named(play, keydb):
    code, output = play([{"keydb_command": {"port": keydb.port, "commands": [["PING"], ["NOSUCH", "thing"]]}}])
    assert code != 0 and "NOSUCH thing was refused" in output


def test_what_config_refuses_to_tell_is_left_out(play, keydb):
    """As with a managed service, which has no CONFIG: INFO tells its limits all the same."""
    user = ["ACL", "SETUSER", "reader", "on", ">secret", "+@all", "-config", "~*"]
    code, output = play([{"keydb_command": {"port": keydb.port, "commands": [user]}}])
    assert code == 0, output
    code, output = play(
        [
            {"keydb_info": {"port": keydb.port, "user": "reader", "password": "secret", "settings": ["notify-keyspace-events"]}, "register": "seen"},
            {"ansible.builtin.debug": {"msg": "RESULT {{ seen.info.maxmemory }} {{ seen.settings }} END"}},
        ]
    )
    assert code == 0 and "RESULT 104857600 {} END" in output, output


def test_a_password_of_any_characters_reaches_keydb_through_its_settings(play, keydb):
    password = "a\"b$c#d'e\\f`g é"
    template = {"src": str(ROOT / "roles/keydb/templates/settings.conf.j2"), "dest": str(keydb.live.parent / "settings.conf"), "mode": "0600"}
    code, output = play([{"ansible.builtin.template": template}], keydb_settings={"masterauth": password}, keydb_buffer_limits={}, keydb_save=[])
    assert code == 0, output
    keydb.restart()
    code, output = play(settings(keydb, {"masterauth": password}))
    assert code == 0 and "RESULT False set= restart= END" in output, output


def test_a_keydb_that_lost_count_of_its_keys_is_found_out_by_a_snapshot(play, keydb):
    """`INFO` says that all is well: KeyDB calls a snapshot whose process has died cancelled."""
    snapshot = [{"keydb_save": {"port": keydb.port, "timeout": 60}}]
    code, output = play(snapshot)
    assert code == 0 and "changed=0" in output, output
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
        code, output = play(snapshot)
        assert code != 0 and "has written no snapshot" in output and "KeydbCannotSave" in output, output
        assert writer.info()["rdb_last_bgsave_status"] == "ok"
