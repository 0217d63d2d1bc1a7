#!/usr/bin/env bash
# Demonstrates Quorate step by step. "make demo" and "make clean-demo" call it. It stops at the first step that has a
# different result than expected. It waits for results instead of a fixed time, so that a busy machine only makes it slower.
# Its own files are in bin/demo.
#
#   run.sh up [CONTEXT [IMAGE]]    runs on a sandbox of three nodes, or on the cluster of that context of your kubeconfig;
#                                  there, backups and restores need a Quorate image that the nodes can pull
#   run.sh down [CONTEXT]          removes everything that "up" created
set -euo pipefail
cd "$(dirname "$0")/../.."

image=${3:-}
readonly context=${2:-} sandbox=demo namespace=quorate-demo dir=bin/demo
readonly repository=$dir/clusters.git log=$dir/quorate.log
[[ -n $context ]] || image=quorate.dev/quorate:demo
readonly image
# On your own cluster, only the demo's namespace is read.
scope=(${context:+--namespace $namespace})
# Your own kubeconfig may start a credential plugin.
trusted=(${context:+--allow-exec})
# A run allows backups only to this destination and with this image.
allowed=(${image:+--allow-backup-destination volume://backups --backup-image "$image"})
# A member that is too busy to respond changes a plan: approved plans, and runs that carry them out, wait longer.
patient=(--config testdata/demo/quorate.yaml)
export PATH=$PWD/bin:$PATH:$PWD/bin/tools

say() { printf '\n\033[1m# %s\033[0m\n' "$*" | plain; }
run() { prompt "$@"; "$@" || fail "$1 ended with exit code $?"; }
fail() {
  printf 'demo: %s\n' "$*" >&2
  [[ ! -s $log ]] || { printf 'demo: the last lines of %s:\n' "$log"; tail -n 20 "$log"; } >&2
  exit 1
}
# quorate shows its progress on a terminal. Otherwise it logs, here to a file.
quorate() { if [[ -t 2 ]]; then command quorate "$@" "${trusted[@]}"; else command quorate "$@" "${trusted[@]}" 2>> "$log"; fi; }
prompt() {
  local word words=()
  for word; do
    [[ $word != *[[:space:]\{\}\;\&\"]* ]] || word="'$word'"
    words+=("$word")
  done
  printf '$ %s\n' "${words[*]}"
}
plain() { if [[ -t 1 && -z ${NO_COLOR:-} ]]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi; }

# exits CODE COMMAND… runs a command that must have that exit code.
exits() {
  local want=$1 got=0
  shift
  prompt "$@"
  "$@" || got=$?
  [[ $got == "$want" ]] || fail "exit code $got, expected $want"
}

# shows TEXT COMMAND… repeats a command for up to a minute until it prints that text.
shows() {
  local want=$1 out code end=$((SECONDS + 60))
  shift
  prompt "$@"
  while true; do
    code=0
    out=$("$@" 2> "$dir/errors") || code=$?
    [[ $code != 0 || $out != *"$want"* ]] || break
    ((SECONDS < end)) || fail "$1 ended with exit code $code: $out$(< "$dir/errors"); expected it to show: $want"
    sleep 1
  done
  printf '%s\n' "$out"
}

# use_cluster gives the demo a kubeconfig of its own, so that nothing else is touched by mistake.
use_cluster() {
  mkdir -p "$dir"
  chmod 700 "$dir"
  if [[ -n $context ]]; then
    command -v kubectl > /dev/null || fail "install kubectl first"
    say "Using the cluster of context $context, in the namespace $namespace"
    kubectl config view --minify --flatten --context "$context" > "$dir/kubeconfig"
  else
    [[ $(uname) == Linux && $EUID == 0 ]] || fail "a sandbox takes Linux and root; to use a cluster of yours: make demo CONTEXT=name, with a context of your kubeconfig"
    say "A real Kubernetes cluster of three nodes, without Docker; the first time, it is built from source"
    run sandbox up --name $sandbox --nodes 3
    sandbox load --name $sandbox "$image=bin/quorate"
    sandbox build --tools bin/tools
    cp "$(sandbox kubeconfig --name $sandbox)" "$dir/kubeconfig"
  fi
  : > "$log"
  export KUBECONFIG=$PWD/$dir/kubeconfig
  kubectl config set-context --current --namespace $namespace > /dev/null
}

# remove_namespace removes what an earlier demo has left, and nothing that is not the demo's.
remove_namespace() {
  local part
  part=$(kubectl get namespace $namespace --ignore-not-found --output 'jsonpath={.metadata.name}:{.metadata.labels.app\.kubernetes\.io/part-of}')
  case $part in
    '') ;;
    "$namespace:quorate-demo") run kubectl delete namespace $namespace ;;
    *) fail "there is a namespace $namespace that is not the demo's" ;;
  esac
}

push() {
  rm -rf "$repository" "$dir/checkout"
  run git init --quiet --bare --initial-branch main "$repository"
  git clone --quiet "$repository" "$dir/checkout" 2> /dev/null
  git -C "$dir/checkout" symbolic-ref HEAD refs/heads/main # an older git does not take over the name of a branch without commits
  cp -r testdata/demo/clusters "$dir/checkout/"
  run cat "$dir/checkout/clusters/a.yaml"
  git -C "$dir/checkout" add .
  git -C "$dir/checkout" -c user.name=demo -c user.email=demo@localhost commit --quiet --message "Declare a cluster"
  run git -C "$dir/checkout" push --quiet origin HEAD:main
}

# versions prints what changes with every write to an object; of those that Kubernetes writes a status into, with a write to
# the rest.
versions() {
  kubectl get etcdclusters,services,configmaps,secrets,leases --no-headers \
    --output 'custom-columns=KIND:.kind,NAME:.metadata.name,VERSION:.metadata.resourceVersion'
  kubectl get statefulsets,poddisruptionbudgets --no-headers \
    --output 'custom-columns=KIND:.kind,NAME:.metadata.name,GENERATION:.metadata.generation'
}

found() {
  say "Install the CustomResourceDefinition"
  run quorate install
  run kubectl apply --filename testdata/demo/namespace.yaml

  say "Declare a cluster of three members: a git push"
  push

  say "What would Quorate do?"
  shows 'Bootstrap' quorate plan --source "$repository" "${scope[@]}"

  say "Run passes until the cluster matches the declaration"
  run quorate run --source "$repository" "${scope[@]}" --until-converged
  shows 'a-2' quorate status "$namespace/a"
  shows '3/3' kubectl get etcd
}

serve() {
  say "An application writes and reads a key, with the certificates in the Secret a-client-tls"
  run kubectl apply --filename testdata/demo/app.yaml
  kubectl wait --for=condition=Ready pod/app --timeout 5m > /dev/null
  shows 'OK' kubectl exec app -- etcdctl --endpoints "https://a-client.$namespace.svc:2379" put greeting 'hello from git'
  shows 'hello from git' kubectl exec app -- etcdctl --endpoints "https://a-client.$namespace.svc:2379" get greeting
}

heal() {
  say "A pod is deleted while Quorate does not run: Kubernetes starts the member again with its data"
  local before
  before=$(kubectl get pod a-1 --output 'jsonpath={.metadata.uid}')
  run kubectl delete pod a-1
  run kubectl wait --for=create pod/a-1 --timeout 5m
  run kubectl wait --for=condition=Ready pod/a-1 --timeout 5m
  [[ $(kubectl get pod a-1 --output 'jsonpath={.metadata.uid}') != "$before" ]] || fail "it is the same pod as before"
  shows 'hello from git' kubectl exec app -- etcdctl --endpoints "https://a-1.a.$namespace.svc:2379" get greeting
}

drift() {
  say "Objects are changed manually"
  run kubectl delete service a-client
  run kubectl patch poddisruptionbudget a --type merge --patch '{"spec":{"minAvailable":0}}'
  say "The plan shows the differences (exit code 2: changes are pending), and the next run corrects them"
  exits 2 quorate plan --source "$repository" "${scope[@]}" --detailed-exitcode
  run quorate run --source "$repository" "${scope[@]}" --until-converged
  shows '2379' kubectl get service a-client
  shows '2' kubectl get poddisruptionbudget a --output 'jsonpath={.spec.minAvailable}{"\n"}'
  shows 'hello from git' kubectl exec app -- etcdctl --endpoints "https://a-client.$namespace.svc:2379" get greeting
}

# quiet makes one pass over a cluster that is as declared. On a busy machine a member may not answer in time, which is told in the
# status: then the cluster is waited for, and the pass repeated. One that always writes something ends the demo.
quiet() {
  say "Another pass changes nothing (exit code 0, and all objects are unchanged)"
  local try code
  for try in {1..20}; do
    quorate run --source "$repository" "${scope[@]}" --until-converged > /dev/null || fail "not as declared any more: exit code $?"
    versions > "$dir/before"
    code=0
    quorate run --source "$repository" "${scope[@]}" --detailed-exitcode > "$dir/pass" || code=$?
    versions > "$dir/after"
    [[ $code != 0 ]] || ! cmp --quiet "$dir/before" "$dir/after" || break
    ((try < 20)) || fail "the last of $try passes ended with exit code $code: $(< "$dir/pass") $(diff "$dir/before" "$dir/after")"
  done
  prompt quorate run --source "$repository" "${scope[@]}" --detailed-exitcode
  cat "$dir/pass"
  run diff "$dir/before" "$dir/after"
}

# declare_change TEXT SED… changes the declaration by a commit with that text, and pushes it.
declare_change() {
  commit_change "$@"
  run git -C "$dir/checkout" push --quiet origin HEAD:main
}

# commit_change TEXT SED… does so without pushing it.
commit_change() {
  local text=$1
  shift
  sed -i "$@" "$dir/checkout/clusters/a.yaml"
  git -C "$dir/checkout" -c user.name=demo -c user.email=demo@localhost commit --quiet --all --message "$text"
  run git -C "$dir/checkout" show --format=%s --unified=0 --no-prefix
}

# plan_change shows the plan of what was committed as a comment for its pull request, and then pushes it. The digest of the
# plan stands for the revision and for every action.
plan_change() {
  say "Before the push, a plan as a comment for the pull request"
  shows 'Plan `sha256:' quorate plan --source "$dir/checkout" "${scope[@]}" "${patient[@]}" --output markdown --output "json=$dir/plan.json"
  digest=$(sed -n 's/^  "digest": "\(sha256:[0-9a-f]*\)".*/\1/p' "$dir/plan.json")
  [[ -n $digest ]] || fail "$dir/plan.json has no digest"
  say "The change is approved and merged. The run carries out the steps of the plan, and no others"
  run git -C "$dir/checkout" push --quiet origin HEAD:main
}

# run_planned runs passes that keep to that plan: whatever else would be done ends them with exit code 4.
run_planned() { run quorate run --source "$repository" "${scope[@]}" "${patient[@]}" --until-converged --approve "plan=$digest"; }

# write_on writes keys until the file $dir/writing is deleted, and lists those that etcd has acknowledged.
write_on() {
  local n=0
  while [[ -e $dir/writing ]]; do
    n=$((n + 1))
    if kubectl exec app -- etcdctl --command-timeout 3s --endpoints "https://a-client.$namespace.svc:2379" put "writer/$n" "$n" > /dev/null 2>&1; then
      echo "writer/$n" >> "$dir/acknowledged"
    else
      echo "writer/$n" >> "$dir/failed"
    fi
  done
}

grow() {
  say "Five members instead of three: a git push"
  commit_change "Five members" 's/replicas: 3/replicas: 5/'
  plan_change
  run_planned
  shows '5/5' kubectl get etcd
}

roll() {
  say "Three members again and a new minor version of etcd, in one push, while an application keeps writing"
  commit_change "Three members of etcd 3.7.3" 's/replicas: 5/replicas: 3/; s/version: .*/version: 3.7.3/'
  plan_change
  : > "$dir/acknowledged"
  : > "$dir/failed"
  trap 'rm -f "$dir/writing"' EXIT
  touch "$dir/writing"
  write_on &
  run_planned
  rm "$dir/writing"
  wait
  shows '3.7.3' kubectl get etcd
  shows 'a-2' kubectl get pvc --output name
  local acknowledged found
  acknowledged=$(wc -l < "$dir/acknowledged")
  found=$(kubectl exec app -- etcdctl --endpoints "https://a-client.$namespace.svc:2379" get writer/ --prefix --keys-only | sort)
  [[ -z $(comm -23 <(sort "$dir/acknowledged") <(printf '%s\n' "$found")) ]] || fail "an acknowledged write is lost"
  echo "$acknowledged writes were acknowledged, $(wc -l < "$dir/failed") failed, and all acknowledged writes exist"
}

replace() {
  say "A member loses its volume. It does not start without its data; the next run replaces it"
  local before
  before=$(kubectl get etcd a --output 'jsonpath={.status.members[?(@.name=="a-1")].id}')
  run kubectl delete pvc data-a-1 --wait=false
  run kubectl delete pod a-1
  run quorate run --source "$repository" "${scope[@]}" --until-converged
  shows 'a-1' quorate status "$namespace/a"
  [[ $(kubectl get etcd a --output 'jsonpath={.status.members[?(@.name=="a-1")].id}') != "$before" ]] || fail "a-1 is the same member as before"
  shows 'hello from git' kubectl exec app -- etcdctl --endpoints "https://a-1.a.$namespace.svc:2379" get greeting
}

backup() {
  say "Declare hourly backups to a volume: a git push. The administrator allows the destination"
  run kubectl apply --filename testdata/demo/backups.yaml
  declare_change "Back up" '$a\  backup:\n    schedule: H * * * *\n    to: {volume: {claimName: backups}}'
  run quorate run --source "$repository" "${scope[@]}" "${allowed[@]}" --until-converged
  say "The first backup starts immediately. It counts once it has been read back"
  run kubectl wait --for=condition=Complete job --selector etcd.quorate.dev/cluster=a --timeout 5m
  run quorate run --source "$repository" "${scope[@]}" "${allowed[@]}"
  shows ', verified, in ' quorate status "$namespace/a"
}

disaster() {
  say "The cluster and its volumes are deleted. A commit declares the backup to restore, and the next run restores it"
  run kubectl delete etcd a --cascade=foreground --timeout 5m
  run kubectl delete pvc --selector etcd.quorate.dev/cluster=a --timeout 5m
  declare_change "Restore" '$a\  restore:\n    from: {volume: {claimName: backups}}'
  run quorate run --source "$repository" "${scope[@]}" "${allowed[@]}" --until-converged
  shows 'the backup ' kubectl get etcd a --output 'jsonpath={.status.restoredFrom}{"\n"}'
  say "The application reads its new certificates, because the restored cluster has a new CA; its key still exists"
  run kubectl delete pod app
  run kubectl apply --filename testdata/demo/app.yaml
  kubectl wait --for=condition=Ready pod/app --timeout 5m > /dev/null
  shows 'hello from git' kubectl exec app -- etcdctl --endpoints "https://a-client.$namespace.svc:2379" get greeting
}

# resident installs Quorate in the sandbox, where a git server of its own can be reached.
resident() {
  say "Run Quorate in the cluster: two loops from the image, with a ServiceAccount of their own. From now on, a push is enough"
  rm -rf "$dir/served" "$dir/team"
  run git init --quiet --bare --initial-branch main "$dir/served/team.git"
  git clone --quiet "$dir/served/team.git" "$dir/team" 2> /dev/null
  local url
  coproc git_server { exec sandbox exec --name $sandbox -- "$PWD/bin/sandbox" serve-git "$PWD/$dir/served"; }
  read -r url <&"${git_server[0]}"
  run quorate install --mode loop --image "$image" --source "$url/team.git" --branch main -- "${allowed[@]}"
  run kubectl --namespace quorate-system rollout status deployment/quorate --timeout 5m
  sed 's/name: a$/name: b/; s/replicas: 3/replicas: 1/' testdata/demo/clusters/a.yaml > "$dir/team/b.yaml"
  run cat "$dir/team/b.yaml"
  git -C "$dir/team" add .
  git -C "$dir/team" -c user.name=demo -c user.email=demo@localhost commit --quiet --message "Declare a cluster of the team's"
  run git -C "$dir/team" push --quiet origin HEAD:main
  shows 'Converged' kubectl get etcd b
  say "Uninstall Quorate: the clusters that it created are kept"
  run quorate uninstall
  shows '1/1' kubectl get etcd b
}

farewell() {
  say "Look around"
  cat << TEXT
export KUBECONFIG=$KUBECONFIG PATH=\$PATH:$PWD/bin:$PWD/bin/tools
kubectl get etcd,pods,pvc -o wide
kubectl get etcd a -o yaml
kubectl get events --field-selector involvedObject.name=a
kubectl exec app -- etcdctl --endpoints https://a-client.$namespace.svc:2379 member list --write-out table
\$EDITOR $PWD/$dir/checkout/clusters/a.yaml      # then commit, push and:
quorate run --source $PWD/$repository${context:+ --namespace $namespace --allow-exec} --until-converged ${allowed[*]:-}
TEXT
  [[ ! -s $log ]] || echo "less $PWD/$log      # what the runs logged"
  [[ -n $context ]] || echo "sandbox exec --name $sandbox -- COMMAND      # in the place of a pod"
  echo
  echo "make clean-demo${context:+ CONTEXT=$context}      # removes all of it"
}

up() {
  use_cluster
  remove_namespace
  found
  serve
  heal
  drift
  quiet
  grow
  roll
  replace
  if [[ -n $image ]]; then
    backup
    disaster
  fi
  [[ -n $context ]] || resident
  farewell
}

down() {
  if [[ -n $context ]]; then
    use_cluster
    remove_namespace
    echo "The CustomResourceDefinition stays: kubectl delete crd etcdclusters.etcd.quorate.dev removes it, and every EtcdCluster with it."
  else
    run sandbox down --name $sandbox
  fi
  rm -rf "$dir"
}

case ${1:-} in
  up | down) "$1" ;;
  *) fail "usage: $0 up|down [CONTEXT [IMAGE]]" ;;
esac
