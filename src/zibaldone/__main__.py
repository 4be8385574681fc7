from zibaldone.cli.main import main

main()
