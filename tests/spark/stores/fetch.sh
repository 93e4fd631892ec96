#!/bin/sh
# Fetch what the tests of stores need into .cache/stores/NAME under the repository root.  Running it
# again does nothing unless a pom or this file changed.  Needs: mvn, Java 17, Python.
#
#   tests/spark/stores/fetch.sh           s3
#   tests/spark/stores/fetch.sh s3        hadoop-aws and parts of the AWS SDK; a server (moto)
#   tests/spark/stores/fetch.sh hdfs      Hadoop's cluster in one process
#   tests/spark/stores/fetch.sh delta     Delta, and the Spark that it is made for
#   tests/spark/stores/fetch.sh kafka     Spark's own connector for Kafka
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cache=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache
mkdir -p "$cache/stores"
# The cache ignores itself, so that none of it is ever committed.
[ -f "$cache/.gitignore" ] || echo '*' > "$cache/.gitignore"

wheels() {
    case $1 in
    s3) echo "moto[s3]==5.2.5 flask flask-cors" ;;
    delta) echo "pyspark==4.1.4 pandas>=2.2,<3 pyarrow>=18 msgpack msgspec numpy" ;;
    esac
}

[ $# -gt 0 ] || set -- s3
for name in "$@"; do
    dir=$cache/stores/$name
    [ -f "$here/pom-$name.xml" ] || { echo "fetch.sh: no $name" >&2; exit 2; }
    if [ -f "$dir/made-of" ] && cat "$here/pom-$name.xml" "$0" | cmp -s - "$dir/made-of"; then
        echo "$name: already in .cache/stores/$name"
        continue
    fi
    rm -rf "$dir"
    mkdir -p "$dir"
    # Maven works on a copy, so that it leaves no target/ in the source tree.
    cp "$here/pom-$name.xml" "$dir/pom.xml"
    mvn -q -B -f "$dir/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$dir/jars"
    if [ -n "$(wheels "$name")" ]; then
        "${PYTHON:-python3}" -m venv "$dir/venv"
        # shellcheck disable=SC2046
        "$dir/venv/bin/pip" install --quiet --disable-pip-version-check $(wheels "$name")
    fi
    cat "$here/pom-$name.xml" "$0" > "$dir/made-of"
    echo "$name: $(du -sh "$dir" | cut -f1) in .cache/stores/$name"
done
