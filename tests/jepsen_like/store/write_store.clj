;; Writes version-0.jepsen, version-1.jepsen and history.edn beside this file: one history in both
;; versions of Jepsen's store, and as Clojure prints it. The bytes of values are those of the
;; libraries that Jepsen uses; the blocks are written as jepsen.store.format describes them. With
;; data.fressian 1.1.1 and what it depends on (Maven: org.clojure:data.fressian) and Java 17:
;;
;;     java -cp 'DIRECTORY/*' clojure.main tests/jepsen_like/store/write_store.clj

(ns jepsen.history)

(defrecord Op [^long index ^long time type process f value])
(defrecord Node [id links])
(defrecord BlockRef [id])

(ns write-store
  (:require [clojure.data.fressian :as fress])
  (:import (clojure.lang Atom MapEntry PersistentHashSet PersistentTreeSet)
           (java.io ByteArrayOutputStream DataOutputStream File RandomAccessFile)
           (java.nio ByteBuffer)
           (java.time Instant)
           (java.util.zip CRC32)
           (jepsen.history BlockRef Op)
           (org.fressian Writer)
           (org.fressian.handlers WriteHandler)))

(def directory (.getParent (File. ^String *file*)))

(defn tagged
  "How values of a class are written: a tag, and the parts that `parts` makes of the value."
  [tag parts]
  {tag (reify WriteHandler
         (write [_ writer value]
           (let [made (parts value)]
             (.writeTag writer tag (count made))
             (doseq [part made] (.writeObject writer part)))))})

(def op-written
  {"jepsen.history.Op"
   (reify WriteHandler
     (write [_ w op]
       (let [^Writer w w, ^Op op op]
         (.writeTag w "jepsen.history.Op" 7)
         (.writeInt w (.index op))
         (.writeInt w (.time op))
         (.writeObject w (.type op) true)
         (.writeObject w (.process op))
         (.writeObject w (.f op) true)
         (.writeObject w (.value op))
         (.writeObject w (.__extmap op)))))})

(def handlers
  (-> fress/clojure-write-handlers
      (merge {Atom              (tagged "atom" (comp vector deref))
              BlockRef          (tagged "block-ref" (comp vector :id))
              Byte              (tagged "byte" (comp vector short))
              Instant           (tagged "instant" (comp vector str))
              MapEntry          (tagged "map-entry" (juxt key val))
              Op                op-written
              PersistentHashSet (tagged "persistent-hash-set" (comp vector seq))
              PersistentTreeSet (tagged "persistent-sorted-set" (comp vector seq))})
      fress/associative-lookup
      fress/inheritance-lookup))

(defn fressian
  "The bytes of these values, one after the other."
  [values]
  (let [bytes  (ByteArrayOutputStream.)
        writer (fress/create-writer bytes :handlers handlers)]
    (doseq [value values] (fress/write-object writer value))
    (.toByteArray bytes)))

(defn numbers
  "The bytes of numbers: [:int 1 :long 2 ...]"
  [& told]
  (let [bytes (ByteArrayOutputStream.)
        out   (DataOutputStream. bytes)]
    (doseq [[size number] (partition 2 told)]
      (case size :int (.writeInt out number) :long (.writeLong out number)))
    (.toByteArray bytes)))

(defn header [length checksum kind]
  (let [header (ByteBuffer/allocate 28)]
    (.putLong header length)
    (.putInt header (unchecked-int checksum))
    (.putShort header kind)
    (.array header)))

(defn append!
  "Writes a block at the end of a file. Returns where it lies."
  [^RandomAccessFile file kind ^bytes content]
  (let [place (.length file)
        length (+ 28 (alength content))
        crc   (doto (CRC32.) (.update content) (.update ^bytes (header length 0 kind)))]
    (.seek file place)
    (.write file ^bytes (header length (.getValue crc) kind))
    (.write file content)
    place))

(defn write-store!
  "Blocks by their numbers: {1 [kind content] ...}. The number of the test's is `root`."
  [path version root blocks]
  (.delete (File. ^String path))
  (with-open [file (RandomAccessFile. ^String path "rw")]
    (.write file (.getBytes "JEPSEN"))
    (.write file ^bytes (numbers :int version :long 0))
    (let [places (into {} (for [[number [kind content]] blocks]
                            [number (append! file kind content)]))
          index  (append! file 1 (apply numbers :int root
                                        (mapcat (fn [[number place]] [:int number :long place])
                                                places)))]
      (.seek file 10)
      (.writeLong file index))))

(def values
  [nil true false
   [0 63 64 -1 -2 4095 4096 -4096 -4097 524287 524288 -524289 33554431 33554432 -33554433
    8589934591 8589934592 -8589934593 2199023255551 2199023255552 -2199023255553
    562949953421311 562949953421312 -562949953421313 Long/MAX_VALUE Long/MIN_VALUE]
   123456789012345678901234567890N -123456789012345678901234567890N
   0.0 1.0 2.5 (float 0.5) -1.0E300
   "" "short" "a string of some more bytes" "\u00fc\u20ac\ud83d\ude00\u0000"
   \a 'symbol 'space/symbol :keyword :space/keyword (byte 7)
   [] [1 2 3] '(1 2) (range 9) {} {:a 1 "b" [2] [3] 4} (zipmap (range 20) (range 20))
   #{} #{1 9 17 33} #{:a [1 2]} (sorted-set 3 1 2)
   (jepsen.history/map->Node {:id 7 :links ["n1" "n2"]})
   #inst "2024-02-29T12:34:56.789-00:00" #uuid "01234567-89ab-cdef-0123-456789abcdef"])

(def moves  ; register "x" is read as it was before the last write
  (concat
   (for [value values]
     {:type :info :process :nemesis :f :tell :value value})
   (for [[process f asked answered more]
         [[0 :write ["x" 1] ["x" 1]]
          [1 :read ["x" nil] ["x" 1]]
          [0 :cas ["y" [1 2]] ["y" [1 2]] {:type :fail :error [:mismatch "y is 0"]}]
          [1 :write ["x" 2] ["x" 2]]
          [0 :read ["x" nil] ["x" 1] {:node "n1" :attempts 2}]
          [1 :read ["y" nil] ["y" nil] {:type :info :error :timeout}]]
         op [{:type :invoke :value (MapEntry. (first asked) (second asked))}
             (merge {:type :ok :value (MapEntry. (first answered) (second answered))} more)]]
     (merge op {:process process :f f}))))

(def history
  (map-indexed (fn [index move] (assoc move :index index :time (* 1500000 index))) moves))

(def test-map
  {:name "written by write_store.clj", :concurrency 2, :nodes ["n1" "n2"], :start (Instant/EPOCH)
   :state (atom {:nodes #{"n1"}}), :history (jepsen.history/->BlockRef 1)})

(let [size  16
      parts (partition-all size (map jepsen.history/map->Op history))
      whole (apply numbers :long (count history)
                   (mapcat (fn [part] [:long (* size part) :int (+ 10 part)])
                           (range (count parts))))]
  (write-store! (str directory "/version-1.jepsen") 1 2
                (into {1 [5 whole], 2 [2 (fressian [test-map])]}
                      (map-indexed (fn [part ops] [(+ 10 part) [4 (fressian ops)]]) parts))))

(write-store! (str directory "/version-0.jepsen") 0 3
              {1 [2 (fressian [(vec history)])]
               2 [3 (byte-array (concat (numbers :int 0) (fressian [{:valid? false}])))]
               3 [2 (fressian [(assoc test-map :results (jepsen.history/->BlockRef 2))])]})

(binding [*print-namespace-maps* false]
  (spit (str directory "/history.edn")
        (apply str (map #(str (pr-str (jepsen.history/map->Op %)) "\n") history))))
