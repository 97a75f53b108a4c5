# bash completion for my-tool
_my_tool() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" path="" word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$path/$word" in
            "/run") path="run" ;;
            "/tools") path="tools" ;;
            "tools/list") path="tools list" ;;
            "/play") path="play" ;;
            "/completion") path="completion" ;;
        esac
    done
    COMPREPLY=()
    case "$path:$prev" in
        "run:--file") COMPREPLY=($(compgen -f -- "$cur")); return ;;
        "run:--mode") COMPREPLY=($(compgen -W "fast slow" -- "$cur")); return ;;
    esac
    case "$path" in
        "") COMPREPLY=($(compgen -W "run tools play completion --help --verbose --version" -- "$cur")) ;;
        "run") COMPREPLY=($(compgen -W "--help --verbose --version --file --mode" -- "$cur")) ;;
        "tools") COMPREPLY=($(compgen -W "list --help --verbose --version" -- "$cur")) ;;
        "tools list") COMPREPLY=($(compgen -W "--help --verbose --version" -- "$cur")) ;;
        "play") COMPREPLY=($(compgen -W "--help --verbose --version" -- "$cur")); [[ "$cur" == -* ]] || COMPREPLY+=($(compgen -f -- "$cur")) ;;
        "completion") COMPREPLY=($(compgen -W "bash zsh fish --help --verbose --version" -- "$cur")) ;;
    esac
}
complete -o filenames -F _my_tool my-tool
