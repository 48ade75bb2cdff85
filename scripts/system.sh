#!/bin/sh
# install_system_package PURPOSE apt=NAMES dnf=NAMES apk=NAMES ... : installs the first name (comma separated)
# that this machine's package manager knows. Sourced by the other scripts; returns 1 when it cannot.

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1; then sudo "$@"
    else
        echo "setup: '$*' needs root, and there is no sudo here" >&2
        return 1
    fi
}

install_with() {
    case "$1" in
        apt) as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$2" ;;
        dnf) as_root dnf install -y -q "$2" ;;
        yum) as_root yum install -y -q "$2" ;;
        apk) as_root apk add --quiet "$2" ;;
        zypper) as_root zypper --non-interactive install "$2" ;;
        pacman) as_root pacman -Sy --noconfirm "$2" ;;
        brew) brew install --quiet "$2" ;;
    esac
}

package_manager() {
    for candidate in apt-get:apt dnf:dnf yum:yum apk:apk zypper:zypper pacman:pacman brew:brew; do
        if command -v "${candidate%%:*}" >/dev/null 2>&1; then
            echo "${candidate##*:}"
            return 0
        fi
    done
    return 1
}

install_system_package() {
    purpose=$1
    shift
    if ! found=$(package_manager); then
        echo "setup: no known package manager to install $purpose" >&2
        return 1
    fi
    for choice in "$@"; do
        [ "${choice%%=*}" = "$found" ] || continue
        if [ "$found" = apt ]; then as_root apt-get update -q >&2 || true; fi
        for package in $(echo "${choice#*=}" | tr ',' ' '); do
            echo "setup: installing $package with $found ($purpose)" >&2
            if install_with "$found" "$package" >&2; then return 0; fi
        done
    done
    echo "setup: $found could not install $purpose" >&2
    return 1
}
