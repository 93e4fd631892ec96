#!/bin/sh
# Fetch the pinned Apache Kafka jars (and all they depend on) with Maven into
# .cache/kafka/<version>/ under the repository root.  Running it again does
# nothing unless the pom changed.  Needs: mvn, Java 17.
#
#   tests/kafka/fetch.sh            all versions
#   tests/kafka/fetch.sh 4          only the 4.3 one (pom-4.xml)
#   tests/kafka/fetch.sh 4.4        only the 4.4 one (pom-4.4.xml)
#   tests/kafka/fetch.sh 3.9        only the 3.9.x one (pom-3.9.xml)
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
cache=$root/.cache
mkdir -p "$cache/kafka"
# The cache ignores itself, so that no jar is ever committed.
[ -f "$cache/.gitignore" ] || echo '*' > "$cache/.gitignore"
[ $# -gt 0 ] || set -- 4 4.4 3.9
for line in "$@"; do
    pom=$here/pom-$line.xml
    [ -f "$pom" ] || { echo "fetch.sh: no $pom" >&2; exit 2; }
    version=$(sed -n 's|.*<kafka.version>\(.*\)</kafka.version>.*|\1|p' "$pom")
    dir=$cache/kafka/$version
    if [ -f "$dir/pom.xml" ] && cmp -s "$pom" "$dir/pom.xml"; then
        echo "kafka $version: already in .cache/kafka/$version"
        continue
    fi
    rm -rf "$dir" "$dir.part"
    # Maven works on a copy, so that it leaves no target/ in the source tree.
    mkdir -p "$dir.part"
    cp "$pom" "$dir.part/pom.xml"
    mvn -q -B -f "$dir.part/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$dir.part"
    mv "$dir.part" "$dir"
    echo "kafka $version: $(ls "$dir" | grep -c '\.jar$') jars in .cache/kafka/$version"
done
