#!/bin/bash
# A whole Slurm on this one machine, for tests: munged, slurmctld and two slurmd ("n1", "n2") on the loopback address.
#
#   two-nodes.sh install [--accounting]   Debian's packages (root)
#   two-nodes.sh up [--accounting]        start what does not run yet; with mariadbd and slurmdbd, so that sacct works
#   eval "$(two-nodes.sh env)"            let sbatch, squeue, ... of this shell speak to it
#   two-nodes.sh status | kill NODE | revive NODE
#   two-nodes.sh down [--purge]           cancel every job, end just the processes recorded by `up`
#
# Everything lies under $SLURM_HERE (default: slurm-here in the folder for temporary files). Runs as any user: jobs are then that user's alone.
set -euo pipefail
here=${SLURM_HERE:-${TMPDIR:-/tmp}/slurm-here}
nodes="n1 n2"
cpus=${SLURM_HERE_CPUS:-2}       # of each node, whatever the machine has
port=${SLURM_HERE_PORT:-17100}   # the first of six
export SLURM_CONF=$here/slurm.conf
export PATH=$PATH:/usr/sbin:/sbin

say() { echo "slurm-here: $*" >&2; }

install() {
  local packages="slurmctld slurmd slurm-client munge"
  [ "${1:-}" = --accounting ] && packages="$packages slurmdbd mariadb-server-core mariadb-client-core"
  # Nothing may start by itself: policy-rc.d forbids it while dpkg configures.
  local policy=/usr/sbin/policy-rc.d made=
  if [ ! -e $policy ]; then printf '#!/bin/sh\nexit 101\n' >$policy; chmod +x $policy; made=1; fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
  [ -z "$made" ] || rm $policy
}

# When a process began, in clock ticks since the boot: with its number it names one process for good.
began_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

pid_of() { cut -d ' ' -f 1 "$here/pids/$1" 2>/dev/null || true; }

# A recorded process that is still there; its number may have been given to another one since.
alive() {
  local pid began
  read -r pid began 2>/dev/null <"$here/pids/$1" || return 1
  [ -n "$began" ] && [ "$(began_at "$pid")" = "$began" ]
}

start() {  # NAME COMMAND...
  local name=$1; shift
  alive "$name" && return
  (cd / && exec setsid "$@" </dev/null >>"$here/log/$name.out" 2>&1) &
  echo "$! $(began_at $!)" >"$here/pids/$name"
}

wait_for() {  # SECONDS WHAT COMMAND...
  local tries=$(( $1 * 10 )) what=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || { say "$what did not come up; see $here/log"; return 1; }
    sleep 0.1
  done
}

end() {  # NAME SIGNAL
  alive "$1" || { rm -f "$here/pids/$1"; return 0; }
  local pid; pid=$(pid_of "$1")
  kill -"${2:-TERM}" "$pid" 2>/dev/null || true
  for _ in $(seq 100); do [ -e "/proc/$pid" ] && alive "$1" || break; sleep 0.1; done
  if alive "$1"; then say "$1 ($pid) does not end; killed"; kill -KILL "$pid"; fi
  rm -f "$here/pids/$1"
}

write_conf() {
  local me; me=$(id -un)
  mkdir -p "$here"/{pids,log,state,munge}; chmod 755 "$here/munge"  # munged wants its socket within reach of all
  [ -s "$here/munge/key" ] || { head -c 1024 /dev/urandom >"$here/munge/key"; chmod 600 "$here/munge/key"; }
  for node in $nodes; do mkdir -p "$here/spool-$node"; done
  cat >"$here/slurm.conf" <<CONF
ClusterName=here
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$me
SlurmdUser=$me
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$here/munge/socket
CredType=cred/munge
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool-%n
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd-%n.pid
SlurmctldLogFile=$here/log/slurmctld.log
SlurmdLogFile=$here/log/slurmd-%n.log
# No cgroups: they are not everywhere to be had in a sandbox or a container.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
# Quick to notice and quick to act; a cluster is slower by a minute here and there.
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=200000,sched_interval=2,bf_interval=2,batch_sched_delay=0
SlurmdTimeout=10
KillWait=5
ReturnToService=2
JobRequeue=1
MaxArraySize=1001
# Low is preempted by high: SIGCONT and SIGTERM, GraceTime, then SIGKILL and back into the queue.
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobCompType=jobcomp/filetxt
JobCompLoc=$here/jobcomp.txt
AccountingStorageType=accounting_storage/$accounting
$([ "$accounting" = none ] || echo "AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((port + 3))
AccountingStoragePass=$here/munge/socket
JobAcctGatherFrequency=0")
GresTypes=gpu
$(n=0; for node in $nodes; do n=$((n + 1)); echo "NodeName=$node NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((port + n)) CPUs=$cpus RealMemory=2000 Gres=gpu:2"; done)
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=5 MaxTime=INFINITE DefaultTime=10 State=UP
PartitionName=high Nodes=ALL PriorityTier=2 PreemptMode=OFF MaxTime=INFINITE DefaultTime=10 State=UP
CONF
  # Two GPUs a node that are none, so that --gres=gpu:1 is granted and CUDA_VISIBLE_DEVICES set.
  for node in $nodes; do printf "NodeName=$node Name=gpu File=%s\n" /dev/null /dev/zero; done >"$here/gres.conf"
  if [ "$accounting" = slurmdbd ]; then
    cat >"$here/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=$here/munge/socket
DbdHost=localhost
DbdPort=$((port + 3))
SlurmUser=$me
LogFile=$here/log/slurmdbd.log
PidFile=$here/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((port + 4))
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
CONF
    chmod 600 "$here/slurmdbd.conf"
  fi
}

database() {
  local user=; [ "$(id -u)" = 0 ] && user=--user=root
  if [ ! -d "$here/db/mysql" ]; then
    mysql_install_db --no-defaults --datadir="$here/db" --auth-root-authentication-method=normal $user \
      --skip-test-db >"$here/log/mysql_install_db.out" 2>&1
  fi
  start mariadbd mariadbd --no-defaults $user --datadir="$here/db" --socket="$here/db.sock" \
    --bind-address=127.0.0.1 --port=$((port + 4)) --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900
  local mysql="mysql --no-defaults --user=root --socket=$here/db.sock"
  wait_for 30 mariadbd $mysql -e 'select 1'
  $mysql -e "create database if not exists slurm; create user if not exists slurm@'127.0.0.1' identified by 'slurm';
    create user if not exists slurm@localhost identified by 'slurm';
    grant all on slurm.* to slurm@'127.0.0.1'; grant all on slurm.* to slurm@localhost"
  # slurmdbd looks for slurmdbd.conf beside the slurm.conf that SLURM_CONF names.
  start slurmdbd slurmdbd -D
  wait_for 30 slurmdbd bash -c "exec 3<>/dev/tcp/127.0.0.1/$((port + 3))"
}

slurmd_of() { start "slurmd-$1" slurmd -D -N "$1" -f "$here/slurm.conf"; }

is_up() { [ "$(sinfo -h -N -p low -t idle,mix,alloc -o %N | sort -u | wc -l)" -ge "$(wc -w <<<"$nodes")" ]; }

up() {
  local began; began=$(date +%s.%N)
  accounting=none; [ "${1:-}" = --accounting ] && accounting=slurmdbd
  for program in munged slurmctld slurmd sbatch; do
    command -v $program >/dev/null || { say "no $program here: run $0 install (root)"; exit 1; }
  done
  mkdir -p "$here"
  if alive slurmctld && ! grep -q "accounting_storage/$accounting\$" "$here/slurm.conf"; then
    say "it runs with another accounting: down first"; exit 1
  fi
  alive slurmctld || write_conf
  start munged munged --foreground --key-file="$here/munge/key" --socket="$here/munge/socket" \
    --pid-file="$here/munge/pid" --log-file="$here/munge/log" --seed-file="$here/munge/seed" --num-threads=10
  wait_for 10 munged test -S "$here/munge/socket"
  [ $accounting = none ] || database
  start slurmctld slurmctld -D -f "$here/slurm.conf"
  wait_for 20 slurmctld scontrol ping
  for node in $nodes; do slurmd_of "$node"; done
  wait_for 30 "a node" is_up
  say "up after $(echo "$(date +%s.%N) - $began" | bc 2>/dev/null || echo ?) s: export SLURM_CONF=$SLURM_CONF"
}

down() {
  if alive slurmctld; then
    scancel --quiet --state=PENDING --user="$(id -un)" 2>/dev/null || true
    scancel --quiet --user="$(id -un)" 2>/dev/null || true
    for _ in $(seq 100); do [ -z "$(squeue -h 2>/dev/null)" ] && break; sleep 0.1; done
  fi
  for node in $nodes; do end "slurmd-$node"; done
  for name in slurmctld slurmdbd mariadbd munged; do end $name; done
  [ "${1:-}" != --purge ] || rm -rf "$here"
  say down
}

case ${1:-} in
  install) install "${2:-}" ;;
  up) up "${2:-}" ;;
  down) down "${2:-}" ;;
  env) echo "export SLURM_CONF=$here/slurm.conf" ;;
  kill) end "slurmd-$2" KILL; say "$2 is dead; Slurm notices after SlurmdTimeout" ;;
  revive) slurmd_of "$2" ;;
  status)
    for file in "$here"/pids/*; do
      name=$(basename "$file"); alive "$name" && echo "$name $(pid_of "$name")" || echo "$name gone"
    done
    sinfo -N ;;
  *) sed -n '2,10p' "$0"; exit 2 ;;
esac
