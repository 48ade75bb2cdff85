#!/bin/sh
# Prints the home of a Java that Spark can run on (17 or newer), and installs one when the machine has none.
# The path goes to stdout, everything else to stderr: JAVA_HOME=$(scripts/java.sh).
# With --find nothing is installed, and nothing is printed if there is none.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/system.sh"

major_version() {
    "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\)\..*/\1/p; s/.*version "\([0-9]*\)".*/\1/p' | head -n 1
}

home_of() {
    "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'
}

candidates() {
    if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; fi
    command -v java || true
    ls -d /usr/lib/jvm/*/bin/java /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java 2>/dev/null || true
}

print_suitable_home() {
    candidates | while read -r java; do
        [ -x "$java" ] || continue
        version=$(major_version "$java")
        if [ "${version:-0}" -ge 17 ]; then
            home_of "$java"
            break
        fi
    done
}

# PySpark's own server binds to the name, and bare machines are met that do not know it.
know_localhost() {
    if ! command -v getent >/dev/null 2>&1 || getent hosts localhost >/dev/null 2>&1; then return 0; fi
    echo "setup: this machine does not know localhost, to which Spark binds: adding it to /etc/hosts" >&2
    printf '127.0.0.1\tlocalhost\n' | as_root tee -a /etc/hosts >/dev/null
}

home=$(print_suitable_home)
if [ "${1:-}" = --find ]; then
    if [ -n "$home" ]; then know_localhost || true; echo "$home"; fi
    exit 0
fi
know_localhost || true
if [ -z "$home" ]; then
    install_system_package "Java 17 or newer, which Spark runs on" \
        apt=openjdk-17-jre-headless,openjdk-21-jre-headless,default-jre-headless \
        dnf=java-17-openjdk-headless,java-21-openjdk-headless \
        yum=java-17-openjdk-headless,java-21-openjdk-headless \
        apk=openjdk17-jre-headless,openjdk21-jre-headless \
        zypper=java-17-openjdk-headless,java-21-openjdk-headless \
        pacman=jre17-openjdk-headless,jre21-openjdk-headless \
        brew=openjdk@17 || true
    home=$(print_suitable_home)
fi
if [ -z "$home" ]; then
    echo "setup: Spark needs Java 17 or newer. Install one (for example openjdk-17-jre-headless) or set" >&2
    echo "setup: JAVA_HOME to it, then run the same command again. 'make demo' works without Java, all but its questions." >&2
    exit 1
fi
echo "$home"
